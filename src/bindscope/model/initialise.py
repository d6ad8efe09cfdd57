"""How weights start: a named scheme, then the parts that make binding easy to learn (see ``InitConfig``).

``mimetic`` starts W_Q = W_K and W_O = W_Vᵀ, so that attention first looks for vectors like its own and copies them.
``offset_bias`` starts layer 0 with W_Q = W_K = 0 and biases that make head h prefer the token h places back. In the
complex view of RoPE a query bias c·e^{−ihθ} against a key bias c scores Re Σ c² e^{i(m−n−h)θ}, largest at n = m − h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from bindscope.model.config import InitConfig
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
    for layer, block in enumerate(model.layers):
        offset = bool(init.offset_bias) and layer < init.offset_layers
        if offset:
            _prefer_offsets(block.attention, init.offset_bias)
        if init.mimetic_qk and not offset:
            _mimic_qk(block.attention, init, generator)
        if init.mimetic_vo:
            _mimic_vo(block.attention, init, generator)


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
    for head in range(config.n_heads):
        query[head, :half] = strength * torch.cos(head * frequencies)
        query[head, half : 2 * half] = -strength * torch.sin(head * frequencies)
        key[head, :half] = strength


def _mimic_qk(attention: Attention, init: InitConfig, generator: torch.Generator) -> None:
    config = attention.config
    inner = config.n_heads * config.d_head
    for head in range(config.n_heads):
        rows = slice(head * config.d_head, (head + 1) * config.d_head)
        shared = init.mimetic_qk * _projection(config.d_head, config.d_model, init, generator)
        attention.qkv.weight[:inner][rows] = shared
        attention.qkv.weight[inner : 2 * inner][rows] = shared


def _mimic_vo(attention: Attention, init: InitConfig, generator: torch.Generator) -> None:
    config = attention.config
    inner = config.n_heads * config.d_head
    for head in range(config.n_heads):
        rows = slice(head * config.d_head, (head + 1) * config.d_head)
        shared = _projection(config.d_head, config.d_model, init, generator)
        attention.qkv.weight[2 * inner :][rows] = shared
        attention.out.weight[:, rows] = init.mimetic_vo * shared.T


def _projection(d_head: int, d_model: int, init: InitConfig, generator: torch.Generator) -> Tensor:
    """[d_head, d_model]: rows N(0, 1/d_model), or orthonormal."""
    gaussian = torch.randn(max(d_head, d_model), d_model, generator=generator) * d_model**-0.5
    if init.orthogonal:
        gaussian = torch.linalg.qr(gaussian.T)[0].T if d_head <= d_model else torch.linalg.qr(gaussian)[0]
    return gaussian[:d_head]
