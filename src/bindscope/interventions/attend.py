"""Attention of many rows that share what stands before them.

Rows of one pair hold the same positions, from some first one on, each with a stream of its own; what stands before is
kept once a pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from bindscope.interventions.parts import Layer, Parts, Workspace, tile_tokens


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
    normed: Tensor | None  # [row, pair, position, d_model]
    normed_queries: Tensor | None  # [row, pair, query, d_model]


class Projection:
    """Queries, keys and values at the positions ``where``, rotated, the queries divided by √d_head."""

    def __init__(self, parts: Parts, where: slice) -> None:
        self.cos = parts.cos[..., where, :]
        self.sin = None if parts.sin is None else tuple(half[..., where, :] for half in parts.sin)

    def project(self, layer: Layer, x: Tensor, out: Tensor, only: slice = slice(0, 3)) -> Tensor:
        """Write all three, or ``only`` some, of streams x [row, pair, position, d_model] that enter the layer.

        ``out`` is [part, pair, head, row, position, d_head]. A few rows are projected at a time.
        """
        n_parts, n_heads, d_head = only.stop - only.start, *layer.shape[1:]
        weight, bias = layer.qkv, layer.qkv_bias
        if n_parts < 3:
            used = slice(only.start * n_heads * d_head, only.stop * n_heads * d_head)
            weight, bias = weight[used], None if bias is None else bias[used]
        n_rows = max(1, tile_tokens(len(weight)) // max(1, x[0, ..., 0].numel()))
        for start in range(0, len(x), n_rows):
            rows = x[start : start + n_rows]
            raw = F.linear(layer.norm1(rows), weight, bias).view(*rows.shape[:3], n_parts, n_heads, d_head)
            self._turn(raw.permute(3, 1, 4, 0, 2, 5), out[:, :, :, start : start + n_rows], only)
        return out

    def _turn(self, raw: Tensor, out: Tensor, only: slice) -> None:
        """Write ``raw``, its queries and keys rotated: each half of the rotating dimensions gets its part of the other."""
        torch.mul(raw, self.cos[only], out=out)
        n_turning = min(only.stop, 2) - only.start
        if self.sin is None or n_turning <= 0:
            return
        turning, (first, second) = slice(only.start, only.start + n_turning), self.sin
        raw, out, half = raw[:n_turning], out[:n_turning], first.shape[-1]
        out[..., :half].addcmul_(raw[..., half : 2 * half], first[turning])
        out[..., half : 2 * half].addcmul_(raw[..., :half], second[turning])


def attend(
    layer: Layer, rows: Rows, before: Before | None, bias: Tensor | None, workspace: Workspace
) -> tuple[Tensor, Tensor]:
    """z [pair, head, row, query, d_head] and pattern [pair, head, row, query, key], keys before the rows' own first.

    ``bias`` [query, key] hides keys among the rows' own positions. Both are in the workspace.
    """
    n_pairs, n_heads, n_rows, n, d_head = rows.keys.shape
    n_queries, n_before = rows.queries.shape[3], 0 if before is None else before.keys.shape[2]
    n_batches = n_pairs * n_heads * n_rows
    scores = workspace.take("scores", n_pairs, n_heads, n_rows, n_queries, n_before + n)
    own = scores.view(-1, n_queries, n_before + n)[..., n_before:]  # [pair·head·row, query, key]
    shared = scores.view(-1, n_rows * n_queries, n_before + n)[..., :n_before]  # [pair·head, row·query, key]
    q = rows.queries.reshape(-1, n_queries, d_head)
    alone = workspace.take("product", n_batches, n_queries, n)  # straight into a part of ``scores`` is slower
    torch.bmm(q, rows.keys.reshape(-1, n, d_head).transpose(1, 2), out=alone)
    if bias is None:
        own.copy_(alone)
    else:
        torch.add(alone, bias, out=own)
    if before is not None:
        together = q.view(-1, n_rows * n_queries, d_head)
        product = workspace.take("product", n_pairs * n_heads, n_rows * n_queries, n_before)
        shared.copy_(torch.bmm(together, before.keys.flatten(0, 1).transpose(1, 2), out=product))
    if layer.a is not None:
        scores.addcmul_(layer.a[:, None, None, None], _match(rows, before)[:, None])
    pattern = torch.softmax(scores, -1, out=scores)
    z = torch.bmm(own, rows.values.reshape(-1, n, d_head), out=workspace.take("z", n_batches, n_queries, d_head))
    if before is not None:
        z.view(-1, n_rows * n_queries, d_head).baddbmm_(shared, before.values.flatten(0, 1))
    return z.view(n_pairs, n_heads, n_rows, n_queries, d_head), pattern


def add_attended(layer: Layer, x: Tensor, z: Tensor, pattern: Tensor, rows: Rows, before: Before | None) -> Tensor:
    """Add all heads to the residual stream x [row, pair, query, d_model], in place."""
    scaled = sum_scaled(layer, pattern, rows, before)  # reads the residual stream, which without LayerNorm is x itself
    mixed = z.permute(2, 0, 3, 1, 4).reshape(-1, layer.out.shape[0])  # [row·pair·query, head·d_head]
    x.view(-1, x.shape[-1]).addmm_(mixed, layer.out)
    for term in (layer.out_bias, scaled):
        if term is not None:
            x += term
    return x


def sum_scaled(layer: Layer, pattern: Tensor, rows: Rows, before: Before | None) -> Tensor | None:
    """What the identity-scaling terms of all heads add, [row, pair, query, d_model], if there are any."""
    if layer.b is None:
        return None
    return _gather(torch.einsum("h,bhrqk->rbqk", layer.b, pattern), rows, before)


def scaled_terms(layer: Layer, pattern: Tensor, rows: Rows, before: Before | None) -> Tensor:
    """What the identity-scaling term of each head adds to the residual stream, [row, pair, query, head, d_model]."""
    assert layer.b is not None
    terms = [scale * _gather(pattern[:, head].transpose(0, 1), rows, before) for head, scale in enumerate(layer.b)]
    return torch.stack(terms, -2)


def _match(rows: Rows, before: Before | None) -> Tensor:
    """x·x of every query and key, [pair, row, query, key]."""
    assert rows.normed is not None
    assert rows.normed_queries is not None
    queries = rows.normed_queries.transpose(0, 1)  # [pair, row, query, d_model]
    own = queries @ rows.normed.permute(1, 0, 3, 2)
    if before is None or before.normed is None:
        return own
    shared = queries.flatten(1, 2) @ before.normed.transpose(1, 2)  # [pair, row·query, key]
    return torch.cat([shared.view(*own.shape[:3], -1), own], -1)


def _gather(pattern: Tensor, rows: Rows, before: Before | None) -> Tensor:
    """pattern·x for a pattern [row, pair, query, key]: [row, pair, query, d_model]."""
    assert rows.normed is not None
    n_before = pattern.shape[-1] - rows.normed.shape[2]
    seen = pattern[..., n_before:] @ rows.normed
    if before is not None and before.normed is not None:
        seen += pattern[..., :n_before] @ before.normed
    return seen
