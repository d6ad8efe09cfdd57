"""How weights start: a named scheme, then the parts that make binding easy to learn (see ``InitConfig``).

*Mimetic* heads start with W_Q = W_K and W_O = W_Vᵀ: attention first looks for vectors like its own and copies them.

*Offset-biased* layers start with W_Q = W_K = 0 and biases that make each head prefer the token some positions back. In the
complex view of RoPE a query bias c·e^{−ioθ} against a key bias c scores Re Σ c² e^{i(m−n−o)θ}, largest at n = m − o.

A *relay* separates two uses of a name. In ``y=x`` the head that looks two positions back brings y to the position of x, where
y and x would otherwise look alike. The relay head copies through a fixed random rotation R, and the keys of later
layers look through R, so that a query for y finds the position y was brought to, and not every position where y stands.

A *tied start* lets a copied token be read out at once: the unembedding begins as the embedding, and is then free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.rope import rope_frequencies

if TYPE_CHECKING:
    from bindscope.model.transformer import Attention, Transformer


@torch.no_grad()
def initialise(model: Transformer, generator: torch.Generator) -> None:
    """Fill every weight of the model in place, drawing from ``generator`` only."""
    init = model.config.init
    for module in model.modules():
        if isinstance(module, nn.Linear):
            _draw(module.weight, _linear_std(init, module), generator)
            if module.bias is not None:
                module.bias.zero_()
        elif isinstance(module, nn.Embedding):
            _draw(module.weight, _embedding_std(init), generator)
    if model.config.positions == "learned":
        _draw(model.pos_embed, _embedding_std(init), generator)
    elif model.config.positions == "normal":
        _draw(model.pos_embed, model.config.d_model**-0.5, generator)
    if init.scale_residual:
        _scale_residual_outputs(model)
    if init.readout_gain != 1 and model.unembed is not None:
        model.unembed.weight.mul_(init.readout_gain)
    if init.tied_start and model.unembed is not None:
        shared = model.embed.weight[: model.config.outputs]
        model.unembed.weight.copy_(init.tied_start * model.config.d_model**-0.5 * shared)
    relay = None if init.relay_offset is None else _draw_orthonormal(model.config.d_model, generator)
    for layer, block in enumerate(model.layers):
        _initialise_attention(block.attention, layer < init.offset_layers, relay, generator)


def _initialise_attention(
    attention: Attention, may_offset: bool, relay: Tensor | None, generator: torch.Generator
) -> None:
    init = attention.config.init
    if init.qk_bias_std:
        _draw(attention.qkv.bias[: sum(attention.config.qkv_rows[:2])], init.qk_bias_std, generator)
    offset = may_offset and bool(init.offset_bias)
    if offset:
        _prefer_offsets(attention, init.offset_bias)
    if init.mimetic_qk and not offset:
        _mimic_qk(attention, relay, generator)
    if init.mimetic_vo:
        _mimic_vo(attention, relay if offset else None, generator)


def _linear_std(init: InitConfig, linear: nn.Linear) -> float:
    return init.std if init.scheme == "gpt2" else init.gain * linear.in_features**-0.5


def _embedding_std(init: InitConfig) -> float:
    return init.std if init.scheme == "gpt2" else init.embedding_std


def _draw(weight: Tensor, std: float, generator: torch.Generator) -> None:
    weight.normal_(0.0, std, generator=generator)


def _scale_residual_outputs(model: Transformer) -> None:
    factor = (2 * model.config.n_layers) ** -0.5
    for block in model.layers:
        block.attention.out.weight.mul_(factor)
        if block.mlp is not None:
            block.mlp.down.weight.mul_(factor)


def _prefer_offsets(attention: Attention, strength: float) -> None:
    config = attention.config
    inner, half = config.n_heads * config.d_head, config.rope_dims // 2
    attention.qkv.weight[: 2 * inner].zero_()
    query, key, _ = attention.qkv.bias.view(3, config.n_heads, config.d_head)
    frequencies = rope_frequencies(config)
    for head, offset in enumerate(config.head_offsets):
        query[head, :half] = strength * torch.cos(offset * frequencies)
        query[head, half : 2 * half] = -strength * torch.sin(offset * frequencies)
        key[head, :half] = strength


def _mimic_qk(attention: Attention, relay: Tensor | None, generator: torch.Generator) -> None:
    """Queries and keys agree; where only part of a head rotates, they use the part that does not."""
    config = attention.config
    query, key, _ = attention.qkv.weight.view(3, config.n_heads, config.d_head, config.d_model)
    first = config.rope_dims if config.positions == "rope" and config.rope_dims < config.d_head else 0
    shared = config.init.mimetic_qk * _draw_projections(config, config.d_head - first, generator)
    for weight, map_ in ((query, shared), (key, shared if relay is None else shared @ relay.T)):
        weight.zero_()
        weight[:, first:] = map_


def _mimic_vo(attention: Attention, relay: Tensor | None, generator: torch.Generator) -> None:
    config = attention.config
    _, _, value = attention.qkv.weight.view(3, config.n_heads, config.d_head, config.d_model)
    value.copy_(_draw_projections(config, config.d_head, generator))
    out = config.init.mimetic_vo * value.transpose(1, 2)  # [head, d_model, d_head]
    if relay is not None:
        heads = [head for head, offset in enumerate(config.head_offsets) if offset == config.init.relay_offset]
        out[heads] = relay @ out[heads]
    attention.out.weight.copy_(out.transpose(0, 1).flatten(1))


def _draw_projections(config: ModelConfig, n_rows: int, generator: torch.Generator) -> Tensor:
    """A map [n_rows, d_model] for each head: Gaussian of variance 1/d_model, or rows of one orthonormal matrix."""
    total, d_model = config.n_heads * n_rows, config.d_model
    if not config.init.orthogonal:
        return (torch.randn(total, d_model, generator=generator) * d_model**-0.5).view(-1, n_rows, d_model)
    rows = [_draw_orthonormal(d_model, generator) for _ in range(-(-total // d_model))]
    return torch.cat(rows)[:total].view(-1, n_rows, d_model)


def _draw_orthonormal(size: int, generator: torch.Generator) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size, generator=generator))[0]
