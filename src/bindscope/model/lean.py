"""The same function at less cost: what a model without LayerNorm answers at a few columns.

Training on sums asks for the answer alone, at one column of sixteen, and then most products are not needed:

- The first layer reads x = E[token] + P[position]. Its bilinear forms act on the table of all (token, position) pairs,
  once for a batch; every sequence picks its rows out of the tables of x, x·QK and x·OV.
- In the last layer a query q meets the keys x·W_K as (q·W_Kᵀ)·x, and values are mixed before they are projected:
  Σ α_t (x_t W_V) = (Σ α_t x_t) W_V. So nothing is projected at the columns that nobody asks for.

Only the order of sums differs from ``Transformer.forward``, so answers and gradients agree up to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from bindscope.model.config import ModelConfig

if TYPE_CHECKING:
    from bindscope.model.transformer import Attention, Transformer, View

MOST_COLUMNS = 4  # asked for, beyond which projecting keys and values once is cheaper


def is_lean(config: ModelConfig, n_rows: int, n_columns: int) -> bool:
    """Whether this model's answers to ``n_rows`` sequences at ``n_columns`` can be had, and cheaper, this way.

    >>> is_lean(find_preset("assign-add").config.model, n_rows=512, n_columns=1)
    True
    """
    return (
        config.norm == "none"
        and config.positions in ("learned", "normal")
        and config.causal
        and not config.bias
        and not config.identity_qk
        and not config.identity_vo
        and config.dropout == 0
        and config.n_heads == 1
        and config.n_layers >= 2
        and n_columns <= MOST_COLUMNS
        and n_rows >= config.d_vocab  # the tables have d_vocab rows for each position
    )


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
