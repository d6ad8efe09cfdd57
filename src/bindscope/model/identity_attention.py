"""Attention with identity scaling in few passes over the pattern, its gradient written out.

``attend_with_identity`` gives what ``Attention.attend_explicitly`` spells out, for one head h

    S = scale·q kᵀ + a_h·x_query xᵀ + bias,  P = softmax(S),  z_h = P v,  echo = Σ_h b_h·P x

without keeping scores beside patterns. Left to autograd, the same takes twice as many passes over [batch, head, query,
key], which is where a small model spends its time. With ∂ for the gradient of the loss, backward computes

    ∂P = ∂z vᵀ + b_h·∂echo xᵀ,   ∂S = P∘(∂P − rowsum(P∘∂P)),   ∂a_h = Σ ∂S∘(x_query xᵀ),   ∂b_h = Σ P∘(∂echo xᵀ)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def attend_with_identity(
    q: Tensor, k: Tensor, v: Tensor, x_query: Tensor, x: Tensor, a: Tensor, b: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Heads' outputs [batch, query, head, d_head] and what the identity-scaling term adds to the residual
    stream [batch, query, d_model].

    q, k, v are [batch, position, head, d_head]; a and b [head] already hold their gains and scales; ``bias`` [query,
    key] is −∞ where a key is hidden.
    """
    if bias is None:
        bias = q.new_zeros(q.shape[1], k.shape[1])
    heads_first = (part.transpose(1, 2).contiguous() for part in (q, k, v))
    z, echo = _IdentityAttention.apply(*heads_first, x_query, x, a, b, bias.to(q.dtype))
    return z.transpose(1, 2), echo


class _IdentityAttention(torch.autograd.Function):
    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, x_query: Tensor, x: Tensor, a: Tensor, b: Tensor, bias: Tensor
    ) -> tuple[Tensor, Tensor]:
        shape, scale = (*q.shape[:3], k.shape[2]), q.shape[-1] ** -0.5  # [batch, head, query, key]
        match = x_query @ x.transpose(1, 2)  # [batch, query, key]
        scores = torch.baddbmm(bias, q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), alpha=scale).view(shape)
        scores.addcmul_(a[:, None, None], match[:, None])
        pattern = torch.softmax(scores, -1, out=scores)
        mixed = _sum_heads(b, pattern)  # [batch, query, key]
        ctx.save_for_backward(q, k, v, x_query, x, a, b, match, pattern, mixed)
        return pattern @ v, mixed @ x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_z: Tensor, grad_echo: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, x_query, x, a, b, match, pattern, mixed = ctx.saved_tensors
        scale = q.shape[-1] ** -0.5
        grad_mixed = grad_echo @ x.transpose(1, 2)
        grad_b = _sum_products(pattern, grad_mixed)
        grad_pattern = (grad_z @ v.transpose(2, 3)).addcmul_(b[:, None, None], grad_mixed[:, None])
        grad_scores = _softmax_backward(grad_pattern, pattern)
        grad_match = _sum_heads(a, grad_scores)
        grad_x = torch.baddbmm(mixed.transpose(1, 2) @ grad_echo, grad_match.transpose(1, 2), x_query)
        return (
            (grad_scores @ k).mul_(scale),
            (grad_scores.transpose(2, 3) @ q).mul_(scale),
            pattern.transpose(2, 3) @ grad_z,
            grad_match @ x,
            grad_x,
            _sum_products(grad_scores, match),
            grad_b,
            None,
        )


def _sum_heads(weights: Tensor, pattern: Tensor) -> Tensor:
    """Σ_h weights_h·pattern_h, [batch, query, key]."""
    total = pattern[:, 0] * weights[0]
    for head in range(1, len(weights)):
        total.addcmul_(pattern[:, head], weights[head])
    return total


def _sum_products(pattern: Tensor, shared: Tensor) -> Tensor:
    """For each head the sum of pattern_h∘shared, [head]."""
    return (pattern * shared[:, None]).sum((0, 2, 3))


def _softmax_backward(gradient: Tensor, pattern: Tensor) -> Tensor:
    """The gradient of the scores, written over that of the pattern."""
    return torch.ops.aten._softmax_backward_data.out(gradient, pattern, -1, pattern.dtype, grad_input=gradient)
