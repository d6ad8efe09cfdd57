"""Rotary positions: each pair of a head's dimensions turns by an angle proportional to the position."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bindscope.model.config import ModelConfig


def rope_frequencies(config: ModelConfig) -> Tensor:
    """θ_i = base^(−2i/rope_dims), [rope_dims/2], rounded as GPT-NeoX does: a last bit here grows with the position."""
    dims = config.rope_dims
    return 1.0 / config.rope_base ** (torch.arange(0, dims, 2, dtype=torch.float32) / dims)


def rope_angles(config: ModelConfig, position_ids: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """cos and sin of position·θ, each [position, rope_dims/2]; None for models that do not rotate."""
    if config.positions != "rope":
        return None, None
    angles = position_ids[:, None].float() * rope_frequencies(config).to(position_ids.device)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor, at: Tensor | None = None) -> Tensor:
    """Rotate the first 2·cos.shape[-1] dimensions of [batch, position, head, d_head], paired half against half.

    The result lies in memory head by head, as attention reads it.
    """
    if at is not None:
        cos, sin = cos[at], sin[at]
    n_turning = 2 * cos.shape[-1]
    turning = x.transpose(1, 2)[..., :n_turning]  # [batch, head, position, rope_dims]
    turned = _Rotation.apply(turning, torch.cat([cos, cos], -1).to(x.dtype), torch.cat([-sin, sin], -1).to(x.dtype))
    if n_turning < x.shape[-1]:
        turned = torch.cat([turned, x.transpose(1, 2)[..., n_turning:]], -1)
    return turned.transpose(1, 2)


class _Rotation(torch.autograd.Function):
    """x·cos + swapped(x)·sin, whose gradient is the rotation back: few passes, and nothing of x is stored."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        first, second = x.chunk(2, dim=-1)
        swapped = torch.cat([second, first], dim=-1)
        return x.clone(memory_format=torch.contiguous_format).mul_(cos).addcmul_(swapped, sin)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        cos, sin = ctx.saved_tensors
        return _Rotation.apply(gradient, cos, -sin), None, None
