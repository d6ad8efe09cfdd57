"""Attention of many rows that share what stands before them.

Rows of one pair hold the same positions, from some first one on, each with a stream of its own; what stands before is
kept once a pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from bindscope.interventions.parts import Layer, Parts


@dataclass(frozen=True, eq=False)
class Before:
    """What rows see of the positions before their own."""

    keys: Tensor  # [pair, head, position, d_head]
    values: Tensor  # [pair, head, position, d_head]
    normed: (
        Tensor | None
    )  # [pair, position, d_model]: the residual stream after LayerNorm, for the identity-scaling term


@dataclass(frozen=True, eq=False)
class Rows:
    """The heads of rows: queries (of all positions or one), keys and values; and the normed stream, see ``Before``."""

    queries: Tensor  # [pair, head, row, query, d_head]
    keys: Tensor  # [pair, head, row, position, d_head]
    values: Tensor  # [pair, head, row, position, d_head]
    normed: Tensor | None  # [pair, row, position, d_model]
    normed_queries: Tensor | None  # [pair, row, query, d_model]


class Projection:
    """Queries, keys and values at the positions ``where``, rotated, the queries divided by √d_head."""

    def __init__(self, parts: Parts, where: slice) -> None:
        self.cos = parts.cos[..., where, :]
        self.sin = None if parts.sin is None else tuple(half[..., where, :] for half in parts.sin)

    def project(self, layer: Layer, y: Tensor, only: slice = slice(0, 3)) -> Tensor:
        """All three, or ``only`` some: [part, pair, head, row, position, d_head] of streams [pair, row, position, d_model]."""
        n_parts, n_heads, d_head = only.stop - only.start, *layer.shape[1:]
        inner = n_heads * d_head
        weight, bias = layer.qkv, layer.qkv_bias
        if n_parts < 3:
            used = slice(only.start * inner, only.stop * inner)
            weight, bias = weight[used], None if bias is None else bias[used]
        raw = F.linear(y, weight, bias).view(*y.shape[:3], n_parts, n_heads, d_head).permute(3, 0, 4, 1, 2, 5)
        out = torch.empty(raw.shape, dtype=raw.dtype, device=raw.device)
        torch.mul(raw, self.cos[only], out=out)
        if self.sin is not None:
            turning = slice(only.start, min(only.stop, 2))
            self._turn(raw[: turning.stop - turning.start], out[: turning.stop - turning.start], turning)
        return out

    def _turn(self, raw: Tensor, out: Tensor, parts: slice) -> None:
        """Add what turns into each half of the rotating dimensions from the other."""
        assert self.sin is not None
        first, second = self.sin
        half = first.shape[-1]
        out[..., :half].addcmul_(raw[..., half : 2 * half], first[parts])
        out[..., half : 2 * half].addcmul_(raw[..., :half], second[parts])


def attend(layer: Layer, rows: Rows, before: Before | None, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """z [pair, head, row, query, d_head] and pattern [pair, head, row, query, key], keys before the rows' own first.

    ``bias`` [query, key] hides keys among the rows' own positions.
    """
    n_pairs, n_heads, n_rows, n, d_head = rows.keys.shape
    n_queries, n_before = rows.queries.shape[3], 0 if before is None else before.keys.shape[2]
    scores = rows.queries.new_empty(n_pairs, n_heads, n_rows, n_queries, n_before + n)
    own = scores.view(-1, n_queries, n_before + n)[..., n_before:]  # [pair·head·row, query, key]
    shared = scores.view(-1, n_rows * n_queries, n_before + n)[..., :n_before]  # [pair·head, row·query, key]
    q = rows.queries.reshape(-1, n_queries, d_head)
    alone = torch.bmm(q, rows.keys.reshape(-1, n, d_head).transpose(1, 2))
    if bias is None:
        own.copy_(alone)
    else:
        torch.add(alone, bias, out=own)  # a product written straight into a part of ``scores`` is slower
    if before is not None:
        together = q.view(-1, n_rows * n_queries, d_head)
        shared.copy_(torch.bmm(together, before.keys.flatten(0, 1).transpose(1, 2)))
    if layer.a is not None:
        scores.addcmul_(layer.a[:, None, None, None], _match(rows, before)[:, None])
    pattern = torch.softmax(scores, -1, out=scores)
    z = torch.bmm(own, rows.values.reshape(-1, n, d_head))
    if before is not None:
        z.view(-1, n_rows * n_queries, d_head).baddbmm_(shared, before.values.flatten(0, 1))
    return z.view(n_pairs, n_heads, n_rows, n_queries, d_head), pattern


def add_attended(layer: Layer, x: Tensor, z: Tensor, pattern: Tensor, rows: Rows, before: Before | None) -> Tensor:
    """The residual stream x [pair, row, query, d_model] with all heads added, as a new tensor."""
    mixed = z.permute(0, 2, 3, 1, 4).reshape(-1, layer.out.shape[0])  # [pair·row·query, head·d_head]
    added = torch.addmm(x.reshape(-1, x.shape[-1]), mixed, layer.out)
    if layer.out_bias is not None:
        added += layer.out_bias
    added = added.view(x.shape)
    if layer.b is not None:
        added += _look(torch.einsum("h,bhrqk->brqk", layer.b, pattern), rows, before)
    return added


def split_results(layer: Layer, z: Tensor, pattern: Tensor, rows: Rows, before: Before | None) -> Tensor:
    """What each head adds to the residual stream, identity-scaling term included: [pair, row, query, head, d_model]."""
    results = torch.einsum("bhrqe,hem->brqhm", z, layer.by_head)
    if layer.b is not None:
        for head, scale in enumerate(layer.b):
            results[..., head, :] += scale * _look(pattern[:, head], rows, before)
    return results


def _match(rows: Rows, before: Before | None) -> Tensor:
    """x·x of every query and key, [pair, row, query, key]."""
    assert rows.normed is not None
    assert rows.normed_queries is not None
    own = rows.normed_queries @ rows.normed.transpose(2, 3)
    if before is None or before.normed is None:
        return own
    shared = rows.normed_queries.flatten(1, 2) @ before.normed.transpose(1, 2)  # [pair, row·query, key]
    return torch.cat([shared.view(*own.shape[:3], -1), own], -1)


def _look(pattern: Tensor, rows: Rows, before: Before | None) -> Tensor:
    """pattern·x for a pattern [pair, row, query, key]: [pair, row, query, d_model]."""
    assert rows.normed is not None
    n_before = pattern.shape[-1] - rows.normed.shape[2]
    seen = pattern[..., n_before:] @ rows.normed
    if before is not None and before.normed is not None:
        seen += (pattern[..., :n_before].flatten(1, 2) @ before.normed).view(seen.shape)
    return seen
