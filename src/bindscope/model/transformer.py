"""One transformer for all three studies.

Read it top-down: a token row becomes vectors, each block lets positions exchange them (attention) and works on each
alone (MLP), and the last vectors become logits. Every intermediate passes through ``tap(name, layer, value)``, which
returns the value to go on with; ``run`` uses that to read and write, training passes ``SILENT``, which does nothing.

Identity scaling (study 3) adds to each head h a multiple of the identity to both of its bilinear forms, with x after
LayerNorm and a, b trained scalars that start at 0:

    scores_h = q kᵀ/√d_head + gain·a_h·x xᵀ/√d_model        (W_K W_Qᵀ + a I)
    output_h = pattern_h v W_O + gain·b_h·pattern_h x       (W_V W_Oᵀ + b I)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import skip_init

from bindscope.model.config import ModelConfig
from bindscope.model.identity_attention import attend_with_identity
from bindscope.model.initialise import initialise
from bindscope.model.rope import rope_angles, rotate
from bindscope.tasks.task import Layout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
    "cos": torch.cos,
}


class Tap(Protocol):
    """What sees every intermediate. ``wants`` says whether any of these names is of interest in this layer."""

    def wants(self, layer: int, *names: str) -> bool: ...

    def __call__(self, name: str, layer: int | None, value: Tensor) -> Tensor: ...


class _Silent:
    def wants(self, layer: int, *names: str) -> bool:
        return False

    def __call__(self, name: str, layer: int | None, value: Tensor) -> Tensor:
        return value


SILENT: Tap = _Silent()


@dataclass(frozen=True)
class View:
    """How positions see each other in one forward pass."""

    bias: Tensor | None  # [query, key]: 0 where a key is visible, −∞ where it is hidden; None: all are visible
    all_before: bool  # the bias is the plain causal one, for which fused attention needs no mask
    cos: Tensor | None  # [position, rope_dims/2]
    sin: Tensor | None

    def rows(self, at: Tensor | None) -> Tensor | None:
        """The bias of the queries ``at``."""
        return self.bias if self.bias is None or at is None else self.bias[at]

    def rest(self, first: int) -> View:
        """How the columns from ``first`` on see all columns."""
        bias = None if self.bias is None else self.bias[first:]
        cos, sin = (None if angle is None else angle[first:] for angle in (self.cos, self.sin))
        return View(bias, self.all_before and first == 0, cos, sin)


@dataclass(frozen=True)
class Past:
    """What a layer has of the columns before those that it is given (``model/continuation.py``)."""

    keys: Tensor  # [batch, position, head, d_head]: rotated
    values: Tensor  # [batch, position, head, d_head]
    normed: Tensor | None  # [batch, position, d_model]: x after LayerNorm, for identity scaling

    def extend(self, k: Tensor, v: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Keys, values and x of these columns and the given ones behind them."""
        x = x if self.normed is None else torch.cat([self.normed, x], 1)
        return torch.cat([self.keys, k], 1), torch.cat([self.values, v], 1), x

    def before(self, first: int, rows: Tensor) -> Past:
        """That of some rows, up to column ``first``."""
        normed = None if self.normed is None else self.normed[rows, :first]
        return Past(self.keys[rows, :first], self.values[rows, :first], normed)


class Transformer(nn.Module):
    """Tokens to logits. ``layout`` gives position ids and query blocks; ``at`` asks for some columns only.

    Tokens may stand anywhere: they are brought to the model. What comes out is where the model is.

    >>> Transformer(ModelConfig(d_vocab=40, n_positions=67))(tokens).shape
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        weights = torch.empty(config.d_vocab, config.d_model)
        self.embed = nn.Embedding.from_pretrained(weights, freeze=False)  # skip_init would load torch's compiler for it
        if config.positions == "learned":
            self.pos_embed = nn.Parameter(torch.empty(config.n_positions, config.d_model))
        elif config.positions == "normal":
            self.register_buffer("pos_embed", torch.empty(config.n_positions, config.d_model))
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.n_layers))
        self.norm = make_norm(config)
        self.unembed = None if config.tied else skip_init(nn.Linear, config.d_model, config.outputs, bias=False)
        self.drop = nn.Dropout(config.dropout)
        initialise(self, generator or torch.Generator().manual_seed(0))

    def forward(
        self, tokens: Tensor, layout: Layout | None = None, at: Tensor | None = None, tap: Tap = SILENT
    ) -> Tensor:
        tokens, at = tokens.to(self.W_E.device), None if at is None else at.to(self.W_E.device)
        position_ids = self.position_ids(tokens, layout)  # [position]
        view = self.view(position_ids, layout)
        x = self.enter(tokens, position_ids, tap)  # [batch, position, d_model]
        last = len(self.blocks) - 1
        early = at if tap is SILENT else None  # nothing inside is asked for: the last layer computes only ``at``
        for layer, block in enumerate(self.blocks):
            x = block(x, view, early if layer == last else None, tap)
        if at is not None and early is None:
            x = x[:, at]
        return self.to_logits(x, tap)

    def enter(self, tokens: Tensor, position_ids: Tensor, tap: Tap = SILENT) -> Tensor:
        """Tokens to the residual stream that enters the first layer."""
        x = tap("embed", None, self.embed(tokens))
        if self.config.positions in ("learned", "normal"):
            x = x + tap("pos_embed", None, self.pos_embed[position_ids].expand_as(x))
        return self.drop(x)

    def to_logits(self, x: Tensor, tap: Tap = SILENT) -> Tensor:
        """The residual stream to logits: the last LayerNorm and the unembedding."""
        x = tap("final", None, self.norm(x))
        return F.linear(x, self.W_U.T)

    @property
    def layers(self) -> list[Block]:
        """The blocks, typed."""
        return list(self.blocks)  # type: ignore[arg-type]

    @property
    def W_U(self) -> Tensor:
        """The unembedding, [d_model, outputs]."""
        return (self.embed.weight if self.unembed is None else self.unembed.weight).T

    @property
    def W_E(self) -> Tensor:
        """The embedding, [d_vocab, d_model]."""
        return self.embed.weight

    def position_ids(self, tokens: Tensor, layout: Layout | None) -> Tensor:
        """The position of each column, [position]."""
        if layout is None:
            return torch.arange(tokens.shape[1], device=tokens.device)
        return torch.from_numpy(layout.position_ids).to(tokens.device)

    def view(self, position_ids: Tensor, layout: Layout | None) -> View:
        """How the columns see each other."""
        causal, n_positions, blocks = self.config.causal, len(position_ids), None if layout is None else layout.blocks
        visible = torch.ones(n_positions, n_positions, dtype=torch.bool, device=position_ids.device)
        if blocks is not None:
            block = torch.from_numpy(blocks).to(position_ids.device)
            visible = (block[None, :] == 0) | (block[None, :] == block[:, None])
        if causal:
            visible = visible.tril()
        bias = torch.zeros_like(visible, dtype=self.W_E.dtype).masked_fill_(~visible, float("-inf"))
        cos, sin = rope_angles(self.config, position_ids)
        return View(bias if causal or blocks is not None else None, causal and blocks is None, cos, sin)


class Block(nn.Module):
    """One layer: attention, then an MLP where the configuration has one, each added to the residual stream.

    In a parallel layer the MLP reads what attention reads, and there is no stream between the two.
    """

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer, self.parallel = layer, config.parallel
        self.norm1 = make_norm(config)
        self.attention = Attention(config, layer)
        has_mlp = layer in config.layers_with_mlp
        self.norm2 = make_norm(config) if has_mlp else None
        self.mlp = MLP(config, layer) if has_mlp else None
        self.drop = nn.Dropout(config.dropout)

    def forward(
        self, x: Tensor, view: View, at: Tensor | None = None, tap: Tap = SILENT, past: Past | None = None
    ) -> Tensor:
        x = tap("resid_pre", self.layer, x)
        attended = self.attention(self.norm1(x), view, at, tap, past)
        entering = x if at is None else x[:, at]
        x = entering + self.drop(attended)
        if self.mlp is not None and self.norm2 is not None:
            x = x if self.parallel else tap("resid_mid", self.layer, x)
            x = x + self.drop(self.mlp(self.norm2(entering if self.parallel else x), tap))
        return tap("resid_post", self.layer, x)


class Attention(nn.Module):
    """Multi-head attention with optional rotation, grouped heads and identity scaling.

    Where heads share keys and values (``n_kv_heads``), every head is given a copy of those of its group, so that from
    there on a head is one of ``n_heads`` with q, k and v of its own.
    """

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.config, self.layer = config, layer
        inner = config.n_heads * config.d_head
        self.qkv = skip_init(nn.Linear, config.d_model, sum(config.qkv_rows), bias=config.bias)
        self.out = skip_init(nn.Linear, inner, config.d_model, bias=config.bias)
        self.identity_a = nn.Parameter(torch.zeros(config.n_heads)) if config.identity_qk else None
        self.identity_b = nn.Parameter(torch.zeros(config.n_heads)) if config.identity_vo else None

    def forward(
        self, x: Tensor, view: View, at: Tensor | None = None, tap: Tap = SILENT, past: Past | None = None
    ) -> Tensor:
        layer, queries = self.layer, x if at is None else x[:, at]
        q, k, v = (tap(name, layer, value) for name, value in zip("qkv", self.project(x, queries, at)))
        if view.cos is not None and view.sin is not None:
            q = tap("rot_q", layer, rotate(q, view.cos, view.sin, at))
            k = tap("rot_k", layer, rotate(k, view.cos, view.sin))
        if past is not None:
            k, v, x = past.extend(k, v, x)
        z, pattern, echo = self.attend(q, k, v, x, queries, view, at, tap)
        z = tap("z", layer, z)  # [batch, query, head, d_head]
        if tap.wants(layer, "result"):
            mixed = self.sum_results(z, pattern, x, tap)
        else:
            mixed = self.out(z.flatten(-2)) if echo is None else self.out(z.flatten(-2)) + echo
        return tap("attn_out", layer, mixed)  # [batch, query, d_model]

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, x: Tensor, queries: Tensor, view: View, at: Tensor | None, tap: Tap
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """z; the pattern if something asks for it; and what the identity-scaling term adds to the residual stream, if there is one."""
        identity = self.identity_a is not None or self.identity_b is not None
        unfusable = identity and (q.dtype != x.dtype or (self.training and self.config.dropout > 0))
        if unfusable or tap.wants(self.layer, "scores", "pattern", "result"):
            z, pattern = self.attend_explicitly(q, k, v, x, queries, view.rows(at), tap)
            if self.identity_b is None:
                return z, pattern, None
            return z, pattern, torch.einsum("h,bhqk->bqk", self.scaled_b, pattern) @ x
        if identity:
            z, echo = attend_with_identity(q, k, v, queries, x, self.scaled_a, self.scaled_b, view.rows(at))
            return z, None, echo
        return self.attend_fused(q, k, v, view, at), None, None

    def project(self, x: Tensor, queries: Tensor, at: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each [batch, position, head, d_head]."""
        if at is None:
            q, k, v = self.qkv(x).split(self.config.qkv_rows, -1)
        else:
            n_queries = self.config.qkv_rows[0]
            weight, bias = self.qkv.weight, self.qkv.bias
            q = F.linear(queries, weight[:n_queries], None if bias is None else bias[:n_queries])
            kv = F.linear(x, weight[n_queries:], None if bias is None else bias[n_queries:])
            k, v = kv.chunk(2, -1)
        return self.by_head(q), self.by_head(k), self.by_head(v)

    def by_head(self, values: Tensor, axis: int = -1) -> Tensor:
        """An axis (head·d_head) as two, with a copy of a group's keys or values for each of its heads."""
        axis %= values.dim()
        values = values.unflatten(axis, (-1, self.config.d_head))
        n_sharing = self.config.n_heads // values.shape[axis]
        return values if n_sharing == 1 else values.repeat_interleave(n_sharing, axis)

    def attend_fused(self, q: Tensor, k: Tensor, v: Tensor, view: View, at: Tensor | None) -> Tensor:
        """Attention without materialising the pattern."""
        plainly_causal = view.all_before and at is None
        bias = None if plainly_causal else view.rows(at)
        z = F.scaled_dot_product_attention(
            q.transpose(1, 2),
            k.transpose(1, 2),
            v.transpose(1, 2),
            attn_mask=None if bias is None else bias.to(q.dtype),
            dropout_p=self.config.dropout if self.training else 0.0,
            is_causal=plainly_causal,
        )
        return z.transpose(1, 2)

    def attend_explicitly(
        self, q: Tensor, k: Tensor, v: Tensor, x: Tensor, queries: Tensor, bias: Tensor | None, tap: Tap
    ) -> tuple[Tensor, Tensor]:
        """Attention with its scores and pattern, [batch, head, query, key], and the identity-scaling term's scores."""
        scores = q.transpose(1, 2) @ (k * self.config.d_head**-0.5).permute(0, 2, 3, 1)
        if self.identity_a is not None:
            scores = scores + self.scaled_a[:, None, None] * (queries @ x.transpose(1, 2))[:, None]
        if bias is not None:
            scores = scores + bias
        scores = tap("scores", self.layer, scores)
        pattern = tap("pattern", self.layer, scores.softmax(-1))
        pattern = F.dropout(pattern, self.config.dropout, self.training)
        return (pattern @ v.transpose(1, 2)).transpose(1, 2), pattern

    def sum_results(self, z: Tensor, pattern: Tensor | None, x: Tensor, tap: Tap) -> Tensor:
        """What each head adds to the residual stream, identity-scaling term included, and then their sum."""
        result = torch.einsum("bqhe,hem->bqhm", z, self.W_O)
        if self.identity_b is not None and pattern is not None:
            result = result + torch.einsum("h,bhqk,bkm->bqhm", self.scaled_b, pattern, x)
        total = tap("result", self.layer, result).sum(2)
        return total if self.out.bias is None else total + self.out.bias

    @property
    def scaled_a(self) -> Tensor:
        """What each head multiplies x xᵀ by in its scores, [head]."""
        if self.identity_a is None:
            return self.out.weight.new_zeros(self.config.n_heads)
        return self.identity_a * (self.config.identity_gain * self.config.d_model**-0.5)

    @property
    def scaled_b(self) -> Tensor:
        """What each head multiplies its pattern·x by, [head]."""
        if self.identity_b is None:
            return self.out.weight.new_zeros(self.config.n_heads)
        return self.identity_b * self.config.identity_gain

    def split_rows(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of the joint projection (its weight, bias or gradient) by head: queries, keys, values, [head, d_head, …]."""
        q, k, v = (self.by_head(part, 0) for part in rows.split(self.config.qkv_rows))
        return q, k, v

    @property
    def W_Q(self) -> Tensor:
        """[head, d_model, d_head]"""
        return self.split_rows(self.qkv.weight)[0].transpose(1, 2)

    @property
    def W_K(self) -> Tensor:
        """[head, d_model, d_head]"""
        return self.split_rows(self.qkv.weight)[1].transpose(1, 2)

    @property
    def W_V(self) -> Tensor:
        """[head, d_model, d_head]"""
        return self.split_rows(self.qkv.weight)[2].transpose(1, 2)

    @property
    def W_O(self) -> Tensor:
        """[head, d_head, d_model]"""
        return self.out.weight.T.view(self.config.n_heads, self.config.d_head, self.config.d_model)


class MLP(nn.Module):
    """Two linear maps around a pointwise activation; where it is gated, a third one's activation multiplies the first."""

    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.activation = ACTIVATIONS[config.activation]
        self.gate = skip_init(nn.Linear, config.d_model, config.d_mlp, bias=config.bias) if config.gated else None
        self.up = skip_init(nn.Linear, config.d_model, config.d_mlp, bias=config.bias)
        self.down = skip_init(nn.Linear, config.d_mlp, config.d_model, bias=config.bias)

    def forward(self, x: Tensor, tap: Tap = SILENT) -> Tensor:
        pre = tap("pre", self.layer, self.up(x) if self.gate is None else self.gate(x))  # [batch, position, d_mlp]
        post = self.activation(pre)
        if self.gate is not None:
            post = post * tap("pre_linear", self.layer, self.up(x))
        return tap("mlp_out", self.layer, self.down(tap("post", self.layer, post)))


def make_norm(config: ModelConfig) -> nn.Module:
    kinds = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
    return kinds[config.norm](config.d_model, eps=config.norm_epsilon) if config.norm in kinds else nn.Identity()
