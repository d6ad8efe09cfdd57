"""The same function at less cost: what a model without LayerNorm answers at a few columns.

Training on sums asks for the answer alone, at one column of sixteen, and then most products are not needed:

- The first layer reads x = E[token] + P[position]. Its bilinear forms act on the table of all (token, position) pairs,
  once for a batch; every sequence picks its rows out of the tables of x, x·QK and x·OV.
- In the last layer a query q meets the keys x·W_K as (q·W_Kᵀ)·x, and values are mixed before they are projected:
  Σ α_t (x_t W_V) = (Σ α_t x_t) W_V. So nothing is projected at the columns that nobody asks for.

Only the order of sums differs from ``Transformer.forward``, so answers and gradients agree up to rounding. Who asks for
answers alone, as training and evaluation do, chooses this way once:

    >>> answering = shorten(model)     # the model itself where its shape does not allow it
    >>> answering(tokens, layout, at)
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Attention, Transformer, View
from bindscope.tasks.task import Layout

MOST_COLUMNS = 4  # asked for, beyond which projecting keys and values once is cheaper


def shorten(model: nn.Module) -> nn.Module:
    """The model as it answers at least cost: the same function, by the lean way where there is one."""
    return Lean(model) if isinstance(model, Transformer) and has_lean_way(model.config) else model


def has_lean_way(config: ModelConfig) -> bool:
    """Whether a model of this shape has no part that the lean way leaves out.

    >>> has_lean_way(find_preset("assign-add").config.model)
    True
    """
    linear = config.norm == "none" and not config.bias and config.dropout == 0
    plain = not config.identity_qk and not config.identity_vo and config.n_heads == 1 and not config.parallel
    return linear and plain and config.causal and config.positions in ("learned", "normal") and config.n_layers >= 2


class Lean(nn.Module):
    """A model of such a shape, whose answers at a few columns are computed the lean way."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, layout: Layout | None = None, at: Tensor | None = None) -> Tensor:
        if (
            at is None or len(at) > MOST_COLUMNS or len(tokens) < self.model.config.d_vocab
        ):  # a table has d_vocab rows for each position
            return self.model(tokens, layout, at)
        position_ids = self.model.position_ids(tokens, layout)
        view = self.model.view(position_ids, layout)
        return self.model.to_logits(lean_residual(self.model, tokens, position_ids, at, view))


def lean_residual(model: Transformer, tokens: Tensor, position_ids: Tensor, at: Tensor, view: View) -> Tensor:
    """The residual stream after the last layer at the columns ``at``: [batch, n_at, d_model]."""
    first, *middle, last = model.layers
    x = _attend_by_tables(model, tokens, position_ids, view)  # [batch, position, d_model]
    if first.mlp is not None:
        x = x + first.mlp(x)
    for block in middle:
        x = block(x, view)
    x = _attend_at(last.attention, x, at, view)  # [batch, n_at, d_model]
    return x if last.mlp is None else x + last.mlp(x)


def _attend_by_tables(model: Transformer, tokens: Tensor, position_ids: Tensor, view: View) -> Tensor:
    """The residual stream after the attention of the first layer."""
    attention, positions = model.layers[0].attention, model.pos_embed[position_ids]  # [position, d_model]
    rows = tokens * len(position_ids) + torch.arange(len(position_ids), device=tokens.device)  # [batch, position]

    def look_up(of_token: Tensor, of_position: Tensor) -> Tensor:
        return F.embedding(rows, (of_token[:, None] + of_position).flatten(0, 1))  # [batch, position, d_model]

    qk, ov = _bilinear_forms(attention)
    x = look_up(model.W_E, positions)
    x_qk, x_ov = look_up(model.W_E @ qk, positions @ qk), look_up(model.W_E @ ov, positions @ ov)
    hidden = torch.zeros_like(x[:1, :, :1]) if view.bias is None else view.bias
    scores = torch.baddbmm(hidden.expand(len(x), x.shape[1], x.shape[1]), x_qk, x.transpose(1, 2))
    return torch.baddbmm(x, scores.softmax(-1), x_ov)


def _attend_at(attention: Attention, x: Tensor, at: Tensor, view: View) -> Tensor:
    """The residual stream at the columns ``at`` after the attention of the last layer."""
    queries = x[:, at]  # [batch, n_at, d_model]
    scale = attention.config.d_head**-0.5
    q = queries @ attention.W_Q[0] @ attention.W_K[0].T  # [batch, n_at, d_model]
    bias = view.rows(at)
    mixed = F.scaled_dot_product_attention(q[:, None], x[:, None], x[:, None], attn_mask=bias, scale=scale)[:, 0]
    return queries + mixed @ attention.W_V[0] @ attention.W_O[0]


def _bilinear_forms(attention: Attention) -> tuple[Tensor, Tensor]:
    """QK with its scale, and OV, each [d_model, d_model]."""
    qk = attention.W_Q[0] @ attention.W_K[0].T * attention.config.d_head**-0.5
    return qk, attention.W_V[0] @ attention.W_O[0]
