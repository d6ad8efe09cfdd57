"""Rotary positions: each pair of a head's dimensions turns by an angle proportional to the position."""

from __future__ import annotations

import torch
from torch import Tensor

from bindscope.model.config import ModelConfig


def rope_frequencies(config: ModelConfig) -> Tensor:
    """θ_i = base^(−2i/rope_dims), [rope_dims/2]."""
    dims = config.rope_dims
    return config.rope_base ** -(torch.arange(0, dims, 2, dtype=torch.float32) / dims)


def rope_angles(config: ModelConfig, position_ids: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """cos and sin of position·θ, each [position, rope_dims/2]; None for models that do not rotate."""
    if config.positions != "rope":
        return None, None
    angles = position_ids[:, None].float() * rope_frequencies(config).to(position_ids.device)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor, at: Tensor | None = None) -> Tensor:
    """Rotate the first 2·cos.shape[-1] dimensions of [batch, position, head, d_head], paired half against half."""
    if at is not None:
        cos, sin = cos[at], sin[at]
    cos, sin, half = cos[:, None], sin[:, None], cos.shape[-1]
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], dim=-1)
