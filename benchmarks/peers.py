"""The same transformer as other people write it, with the weights of ours, for ``training_step.py``.

Each builder takes one of our plain RoPE models and returns a module that maps tokens to logits at the last column.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bindscope.model.convert.transformer_lens import state_to_transformer_lens
from bindscope.model.rope import rope_angles
from bindscope.model.transformer import Transformer


class NanoBlock(nn.Module):
    """A block as nanoGPT has it (fused projection, fused causal attention), with rotation added."""

    def __init__(self, width: int, n_heads: int, d_head: int, d_mlp: int, bias: bool) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * n_heads * d_head, bias=bias)
        self.c_proj = nn.Linear(n_heads * d_head, width, bias=bias)
        self.c_fc, self.c_out = nn.Linear(width, d_mlp, bias=bias), nn.Linear(d_mlp, width, bias=bias)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).chunk(3, dim=2)
        q, k, v = (part.view(batch, length, self.n_heads, -1).transpose(1, 2) for part in (q, k, v))
        q, k = rotate_half(q, cos, sin), rotate_half(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(batch, length, -1))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x))))


def rotate_half(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class NanoGPT(nn.Module):
    """A plain nanoGPT-style model."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        config = ours.config
        self.wte = nn.Embedding(config.d_vocab, config.d_model)
        self.h = nn.ModuleList(
            NanoBlock(config.d_model, config.n_heads, config.d_head, config.d_mlp, config.bias) for _ in ours.layers
        )
        self.ln_f = nn.LayerNorm(config.d_model)
        self.lm_head = nn.Linear(config.d_model, config.outputs, bias=False)
        cos, sin = rotary_tables(ours)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)
        names = ("norm1", "norm2", "attention.qkv", "attention.out", "mlp.up", "mlp.down")
        theirs = ("ln_1", "ln_2", "c_attn", "c_proj", "c_fc", "c_out")
        for block, source in zip(self.h, ours.layers):
            for name, their in zip(names, theirs):
                block.get_submodule(their).load_state_dict(source.get_submodule(name).state_dict())
        self.wte.load_state_dict(ours.embed.state_dict())
        self.ln_f.load_state_dict(ours.norm.state_dict())
        self.lm_head.weight.data.copy_(ours.W_U.T)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.wte(tokens)
        cos, sin = self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]]
        for block in self.h:
            x = block(x, cos, sin)
        return self.lm_head(self.ln_f(x[:, -1:]))[:, 0]


class HookPoint(nn.Module):
    """A named position that lets hooks see and change what passes."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class HookedNorm(nn.Module):
    """LayerNorm written out, so that its scale can be hooked."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.hook_scale, self.hook_normalized = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True)
        scale = self.hook_scale((x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt())
        return self.hook_normalized(x / scale) * self.w + self.b


class HookedBlock(nn.Module):
    """A block with a weight a head, einsums, materialised patterns and a hook point at every step."""

    def __init__(self, width: int, n_heads: int, d_head: int, d_mlp: int) -> None:
        super().__init__()
        for letter in "QKV":
            self.register_parameter(f"W_{letter}", nn.Parameter(torch.zeros(n_heads, width, d_head)))
            self.register_parameter(f"b_{letter}", nn.Parameter(torch.zeros(n_heads, d_head)))
        self.W_O, self.b_O = nn.Parameter(torch.zeros(n_heads, d_head, width)), nn.Parameter(torch.zeros(width))
        self.W_in, self.b_in = nn.Parameter(torch.zeros(width, d_mlp)), nn.Parameter(torch.zeros(d_mlp))
        self.W_out, self.b_out = nn.Parameter(torch.zeros(d_mlp, width)), nn.Parameter(torch.zeros(width))
        self.ln1, self.ln2 = HookedNorm(width), HookedNorm(width)
        names = "resid_pre q k v rot_q rot_k attn_scores pattern z attn_out resid_mid pre post mlp_out resid_post"
        self.hooks = nn.ModuleDict({name: HookPoint() for name in names.split()})

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        hook = self.hooks
        x = hook["resid_pre"](x)
        y = self.ln1(x)
        q = hook["q"](torch.einsum("bpd,hde->bphe", y, self.W_Q) + self.b_Q)
        k = hook["k"](torch.einsum("bpd,hde->bphe", y, self.W_K) + self.b_K)
        v = hook["v"](torch.einsum("bpd,hde->bphe", y, self.W_V) + self.b_V)
        q = hook["rot_q"](rotate_half(q, cos[:, None], sin[:, None]))
        k = hook["rot_k"](rotate_half(k, cos[:, None], sin[:, None]))
        scores = torch.einsum("bqhe,bkhe->bhqk", q, k) / q.shape[-1] ** 0.5
        scores = hook["attn_scores"](torch.where(mask, scores, -torch.inf))
        pattern = hook["pattern"](scores.softmax(-1))
        z = hook["z"](torch.einsum("bhqk,bkhe->bqhe", pattern, v))
        x = hook["resid_mid"](x + hook["attn_out"](torch.einsum("bqhe,hed->bqd", z, self.W_O) + self.b_O))
        pre = hook["pre"](self.ln2(x) @ self.W_in + self.b_in)
        out = hook["mlp_out"](hook["post"](F.gelu(pre)) @ self.W_out + self.b_out)
        return hook["resid_post"](x + out)


class HookedStyle(nn.Module):
    """A model in the manner of TransformerLens 1 to 3, as small as it can be."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        config = ours.config
        self.W_E = nn.Parameter(ours.W_E.detach().clone())
        self.W_U = nn.Parameter(ours.W_U.detach().clone().contiguous())
        self.blocks = nn.ModuleList(
            HookedBlock(config.d_model, config.n_heads, config.d_head, config.d_mlp) for _ in ours.layers
        )
        self.ln_final = HookedNorm(config.d_model)
        cos, sin = rotary_tables(ours)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)
        self.register_buffer("mask", torch.ones(config.n_positions, config.n_positions, dtype=torch.bool).tril())
        mine = self.state_dict()
        for name, value in state_to_transformer_lens(ours).items():
            name = name.replace("attn.", "").replace("mlp.", "")
            if name in mine:
                mine[name].copy_(value)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.shape[1]
        x = self.W_E[tokens]
        for block in self.blocks:
            x = block(x, self.cos[:length], self.sin[:length], self.mask[:length, :length])
        return (self.ln_final(x) @ self.W_U)[:, -1]


class LastLogits(nn.Module):
    """A model of another library, asked for the logits of the last column."""

    def __init__(self, model: nn.Module, ask: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.model, self.ask = model, ask

    def forward(self, tokens: Tensor) -> Tensor:
        return self.ask(self.model, tokens)


def build_transformer_lens(ours: Transformer) -> nn.Module | None:
    """TransformerLens's own HookedTransformer; None where it, or its version below 4, is not installed."""
    try:
        from transformer_lens import HookedTransformer, HookedTransformerConfig
    except ImportError:
        return None
    config = ours.config
    model = HookedTransformer(
        HookedTransformerConfig(
            n_layers=config.n_layers,
            d_model=config.d_model,
            d_head=config.d_head,
            n_heads=config.n_heads,
            d_mlp=config.d_mlp,
            d_vocab=config.d_vocab,
            n_ctx=config.n_positions,
            act_fn="gelu",
            normalization_type="LN",
            positional_embedding_type="rotary",
            rotary_dim=config.rope_dims,
            device="cpu",
        )
    )
    model.load_state_dict(state_to_transformer_lens(ours))
    return LastLogits(model, lambda model, tokens: model(tokens)[:, -1])


def build_gpt_neox(ours: Transformer) -> nn.Module | None:
    """Hugging Face's GPT-NeoX with fused attention; None where transformers is not installed."""
    try:
        from transformers import GPTNeoXConfig, GPTNeoXForCausalLM
    except ImportError:
        return None
    config = ours.config
    model = GPTNeoXForCausalLM(
        GPTNeoXConfig(
            vocab_size=config.d_vocab,
            hidden_size=config.d_model,
            num_hidden_layers=config.n_layers,
            num_attention_heads=config.n_heads,
            intermediate_size=config.d_mlp,
            hidden_act="gelu",
            max_position_embeddings=config.n_positions,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope_base, "partial_rotary_factor": 1.0},
            use_parallel_residual=False,
            attention_bias=config.bias,
            attention_dropout=0.0,
            hidden_dropout=0.0,
            tie_word_embeddings=False,
            attn_implementation="sdpa",
        )
    )
    _copy_to_neox(ours, model)
    return LastLogits(model, lambda model, tokens: model(tokens, use_cache=False, logits_to_keep=1).logits[:, -1])


@torch.no_grad()
def _copy_to_neox(ours: Transformer, model: nn.Module) -> None:
    config, neox = ours.config, model.gpt_neox  # type: ignore[union-attr]
    neox.embed_in.weight.copy_(ours.W_E)
    neox.final_layer_norm.load_state_dict(ours.norm.state_dict())
    model.get_output_embeddings().weight.copy_(ours.W_U.T)  # type: ignore[operator]
    for theirs, block in zip(neox.layers, ours.layers):
        theirs.input_layernorm.load_state_dict(block.norm1.state_dict())
        theirs.post_attention_layernorm.load_state_dict(block.norm2.state_dict())  # type: ignore[union-attr]
        qkv, mine = theirs.attention.query_key_value, block.attention.qkv
        by_head = (3, config.n_heads, config.d_head)
        qkv.weight.copy_(mine.weight.unflatten(0, by_head).transpose(0, 1).flatten(0, 2))  # theirs is head by head
        if config.bias:
            qkv.bias.copy_(mine.bias.unflatten(0, by_head).transpose(0, 1).flatten())
        theirs.attention.dense.load_state_dict(block.attention.out.state_dict())
        for their, our in ((theirs.mlp.dense_h_to_4h, block.mlp.up), (theirs.mlp.dense_4h_to_h, block.mlp.down)):  # type: ignore[union-attr]
            their.weight.copy_(our.weight)  # it has biases also where ours has none
            their.bias.copy_(our.bias) if config.bias else their.bias.zero_()


def rotary_tables(ours: Transformer) -> tuple[Tensor, Tensor]:
    """cos and sin of every position's angles, [position, d_head], both halves alike."""
    cos, sin = rope_angles(ours.config, torch.arange(ours.config.n_positions))
    assert cos is not None
    assert sin is not None
    return torch.cat([cos, cos], -1), torch.cat([sin, sin], -1)
