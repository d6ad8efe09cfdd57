"""A transformer taken apart: the weights and tables that ``engine`` needs, without modules around them.

A patch grid calls each layer thousands of times on few rows, where looking things up costs as much as computing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bindscope.model.rope import rope_angles
from bindscope.model.transformer import Attention, Block, Transformer

TILE = 2**17  # numbers that a projection makes at once: few enough to stay near the processor
FEWEST_TOKENS = 256  # in a product, whatever numbers they make: with fewer, weights are fetched for too little work


def tile_tokens(width: int) -> int:
    """How many tokens are projected at once to ``width`` numbers each."""
    return max(FEWEST_TOKENS, TILE // width)


class Layer:
    """The weights of one layer; where heads share keys and values, each has its copy of the rows that make them."""

    def __init__(self, block: Block) -> None:
        attention, mlp = block.attention, block.mlp
        self.index, self.parallel = block.layer, block.parallel
        self.shape = (3, attention.config.n_heads, attention.config.d_head)
        self.norm1, self.norm2 = _norm(block.norm1), _norm(block.norm2)
        self.qkv = _rows_by_head(attention, attention.qkv.weight.detach())
        self.qkv_bias = None if attention.qkv.bias is None else _rows_by_head(attention, attention.qkv.bias.detach())
        self.out, self.out_bias = attention.out.weight.detach().T, _detach(attention.out.bias)
        self.by_head = attention.W_O.detach()  # [head, d_head, d_model]
        self.a = attention.scaled_a.detach() if attention.identity_a is not None else None  # [head]
        self.b = attention.scaled_b.detach() if attention.identity_b is not None else None  # [head]
        self.has_mlp = mlp is not None
        if mlp is not None:
            self.up, self.up_bias = mlp.up.weight.detach(), _detach(mlp.up.bias)
            self.gate = None if mlp.gate is None else (mlp.gate.weight.detach(), _detach(mlp.gate.bias))
            self.down, self.down_bias = mlp.down.weight.detach().T, _detach(mlp.down.bias)
            self.activation = mlp.activation

    def add_mlp(self, x: Tensor, entering: Tensor) -> Tensor:
        """Add the layer's MLP, if it has one, to streams x [..., d_model], in place and tile by tile.

        It reads x, or in a parallel layer the streams ``entering`` it, in a shape that broadcasts to x's.
        """
        if not self.has_mlp:
            return x
        read = entering.reshape(-1, x.shape[-1]) if self.parallel else x.view(-1, x.shape[-1])
        total = torch.zeros_like(read) if self.parallel else read
        n_rows = tile_tokens(len(self.up))
        for tile, sum_ in zip(read.split(n_rows), total.split(n_rows)):
            sum_.addmm_(self.hidden(self.norm2(tile)), self.down)
        if self.down_bias is not None:
            total += self.down_bias
        return x.add_(total.view(entering.shape)) if self.parallel else x

    def hidden(self, y: Tensor) -> Tensor:
        """The MLP's neurons after the activation, [token, d_mlp]."""
        up = F.linear(y, self.up, self.up_bias)
        return self.activation(up) if self.gate is None else self.activation(F.linear(y, *self.gate)) * up


class Workspace(threading.local):
    """Memory that one layer after another computes in: fresh memory costs as much time as the products written there.

    What is taken under a name is overwritten when something is taken under that name again. Every thread has its own.
    """

    def __init__(self, like: Tensor) -> None:
        self.like, self.buffers = like, dict[str, Tensor]()

    def take(self, name: str, *shape: int) -> Tensor:
        """An uninitialised tensor of this shape."""
        size = math.prod(shape)
        if name not in self.buffers or len(self.buffers[name]) < size:
            self.buffers.pop(name, None)  # first, so that both are never held together
            self.buffers[name] = self.like.new_empty(size)
        return self.buffers[name][:size].view(shape)


class Parts:
    """The layers of a model, and what depends on positions alone, for rows of ``n_positions``."""

    def __init__(self, model: Transformer, n_positions: int) -> None:
        self.model, self.config, self.n_positions = model, model.config, n_positions
        self.layers = [Layer(block) for block in model.layers]
        self.last = self.config.n_layers - 1
        self.identity = self.config.identity_qk or self.config.identity_vo
        self.bias: Tensor | None = None  # [query, key]: −∞ where a key is hidden
        if self.config.causal:
            self.bias = model.W_E.detach().new_full((n_positions, n_positions), -torch.inf).triu_(1)
        self.cos, self.sin = _rotation(model, n_positions)
        self.workspace = Workspace(model.W_E.detach())

    def embed(self, tokens: Tensor, first: int) -> Tensor:
        """The residual stream [pair, position, d_model] that enters the first layer; the tokens stand from ``first`` on."""
        x = self.model.embed(tokens.to(self.model.W_E.device))
        if self.config.positions in ("learned", "normal"):
            x = x + self.model.pos_embed[first : first + tokens.shape[1]]
        return x

    def turn(self, raw: Tensor, positions: Tensor, only: slice) -> Tensor:
        """Queries, keys and values, or ``only`` some, of tokens at these positions, [token, part, head, d_head], rotated."""
        turned = raw * self.cos[only, 0, 0, 0][:, positions].transpose(0, 1)[:, :, None]
        n_turning = min(only.stop, 2) - only.start
        if self.sin is None or n_turning <= 0:
            return turned
        first, second = (half[only, 0, 0, 0][:, positions].transpose(0, 1)[:, :, None] for half in self.sin)
        half = first.shape[-1]
        turned[:, :n_turning, :, :half] += raw[:, :n_turning, :, half : 2 * half] * first
        turned[:, :n_turning, :, half : 2 * half] += raw[:, :n_turning, :, :half] * second
        return turned


def _rotation(model: Transformer, n_positions: int) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
    """cos of what turns queries and keys, [q·k·v, 1, 1, 1, position, d_head], values left alone; and sin of both halves.

    The queries' 1/√d_head is in both.
    """
    config, like = model.config, model.W_E.detach()
    cos = like.new_ones(3, 1, 1, 1, n_positions, config.d_head)
    angles = rope_angles(config, torch.arange(n_positions, device=like.device))
    scale = config.d_head**-0.5
    if angles[0] is None or angles[1] is None:
        cos[0] *= scale
        return cos, None
    cos[:2, ..., : config.rope_dims] = torch.cat([angles[0], angles[0]], -1)
    cos[0] *= scale
    sin = angles[1].to(like.dtype).expand(2, 1, 1, 1, -1, -1).clone()  # [q·k, 1, 1, 1, position, rope_dims/2]
    sin[0] *= scale
    return cos, (-sin, sin)


def _norm(norm: nn.Module | None) -> Callable[[Tensor], Tensor]:
    if isinstance(norm, nn.RMSNorm):
        return partial(
            torch.rms_norm, normalized_shape=norm.normalized_shape, weight=norm.weight.detach(), eps=norm.eps
        )
    if not isinstance(norm, nn.LayerNorm):
        return lambda x: x
    shape, weight, bias, epsilon = tuple(norm.normalized_shape), norm.weight.detach(), norm.bias.detach(), norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


def _rows_by_head(attention: Attention, rows: Tensor) -> Tensor:
    """The joint projection's weight or bias with every row of each head, ordered (q·k·v, head, d_head)."""
    if attention.config.kv_heads == attention.config.n_heads:
        return rows
    return torch.cat([part.flatten(0, 1) for part in attention.split_rows(rows)])


def _detach(parameter: Tensor | None) -> Tensor | None:
    return None if parameter is None else parameter.detach()
