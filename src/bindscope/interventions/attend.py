"""Attention of many rows that share what stands before them.

Rows of one pair hold the same positions, from some first one on, each with streams of its own; what stands before is
kept once a pair. Everything here is [pair, row, position, …], or [pair, head, row, position, …] inside a head.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from bindscope.model.rope import rope_angles
from bindscope.model.transformer import Attention, Transformer


@dataclass(frozen=True, eq=False)
class Before:
    """What rows see of the positions before their own."""

    keys: Tensor  # [pair, head, position, d_head]
    values: Tensor  # [pair, head, position, d_head]
    normed: Tensor | None  # [pair, position, d_model]: the stream after LayerNorm, for the identity path


@dataclass(frozen=True, eq=False)
class Rows:
    """The heads of rows: queries (of all positions or one), keys and values; and the normed stream, see ``Before``."""

    queries: Tensor  # [pair, head, row, query, d_head]
    keys: Tensor  # [pair, head, row, position, d_head]
    values: Tensor  # [pair, head, row, position, d_head]
    normed: Tensor | None  # [pair, row, position, d_model]
    normed_queries: Tensor | None  # [pair, row, query, d_model]


def join_rows(first: Rows, second: Rows) -> Rows:
    """The rows of both, one after the other."""
    return Rows(
        torch.cat([first.queries, second.queries], 2),
        torch.cat([first.keys, second.keys], 2),
        torch.cat([first.values, second.values], 2),
        _join(first.normed, second.normed),
        _join(first.normed_queries, second.normed_queries),
    )


def _join(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    return None if first is None or second is None else torch.cat([first, second], 1)


class Turn:
    """The rotation of queries and keys at some positions, with the queries' 1/√d_head in it."""

    def __init__(self, model: Transformer, positions: Tensor) -> None:
        config, like = model.config, model.W_E
        self.cos = like.new_ones(2, 1, 1, 1, len(positions), config.d_head)  # [q·k, 1, 1, 1, position, d_head]
        self.sin: Tensor | None = None  # likewise; the first half of the turning dimensions has its sign reversed
        angles = rope_angles(config, positions)
        if angles[0] is not None and angles[1] is not None:
            self.cos[..., : config.rope_dims] = torch.cat([angles[0], angles[0]], -1)
            self.sin = torch.cat([-angles[1], angles[1]], -1).to(like.dtype).expand(2, 1, 1, 1, -1, -1).clone()
            self.sin[0] *= config.d_head**-0.5
        self.cos[0] *= config.d_head**-0.5

    def at(self, position: int) -> Turn:
        """The rotation at one of the positions."""
        turn = Turn.__new__(Turn)
        turn.cos = self.cos[..., position : position + 1, :]
        turn.sin = None if self.sin is None else self.sin[..., position : position + 1, :]
        return turn

    def write(self, heads: Tensor, out: Tensor, parts: slice) -> None:
        """Turn ``heads`` [part, pair, head, row, position, d_head] into ``out``; ``parts``: queries, keys or both."""
        torch.mul(heads, self.cos[parts], out=out)
        if self.sin is not None:
            half, sin = self.sin.shape[-1] // 2, self.sin[parts]
            out[..., :half].addcmul_(heads[..., half : 2 * half], sin[..., :half])
            out[..., half : 2 * half].addcmul_(heads[..., :half], sin[..., half:])


def project(attention: Attention, y: Tensor, turn: Turn) -> Tensor:
    """Queries, keys and values [3, pair, head, row, position, d_head] of the normed stream [pair, row, position, d_model]."""
    raw = _by_head(F.linear(y, attention.qkv.weight, attention.qkv.bias), 3, attention)
    out = torch.empty(raw.shape, dtype=raw.dtype, device=raw.device)
    turn.write(raw[:2], out[:2], slice(0, 2))
    out[2] = raw[2]
    return out


def project_asked(attention: Attention, y: Tensor, turn: Turn, at: int) -> tuple[Tensor, Tensor]:
    """The queries [pair, head, row, 1, d_head] of position ``at``, and keys and values [2, …] of all."""
    inner, weight, bias = attention.out.in_features, attention.qkv.weight, attention.qkv.bias
    asked = y[:, :, at : at + 1]
    raw = _by_head(F.linear(asked, weight[:inner], None if bias is None else bias[:inner]), 1, attention)
    queries = torch.empty(raw.shape, dtype=raw.dtype, device=raw.device)
    turn.at(at).write(raw, queries, slice(0, 1))
    raw = _by_head(F.linear(y, weight[inner:], None if bias is None else bias[inner:]), 2, attention)
    out = torch.empty(raw.shape, dtype=raw.dtype, device=raw.device)
    turn.write(raw[:1], out[:1], slice(1, 2))
    out[1] = raw[1]
    return queries[0], out


def _by_head(projected: Tensor, n_parts: int, attention: Attention) -> Tensor:
    shape = (n_parts, attention.config.n_heads, attention.config.d_head)
    return projected.unflatten(-1, shape).permute(3, 0, 4, 1, 2, 5)


def attend(attention: Attention, rows: Rows, before: Before | None, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """z [pair, head, row, query, d_head] and pattern [pair, head, row, query, key], keys before the rows' own first.

    ``bias`` [query, key] hides keys among the rows' own positions.
    """
    n_pairs, n_heads, n_rows, n, d_head = rows.keys.shape
    n_queries, n_before = rows.queries.shape[3], 0 if before is None else before.keys.shape[2]
    scores = rows.queries.new_empty(n_pairs, n_heads, n_rows, n_queries, n_before + n)
    q = rows.queries.reshape(-1, n_queries, d_head)  # [pair·head·row, query, d_head]
    own = scores.view(-1, n_queries, n_before + n)[..., n_before:]
    k = rows.keys.reshape(-1, n, d_head).transpose(1, 2)
    if bias is None:
        torch.bmm(q, k, out=own)
    else:
        torch.baddbmm(bias, q, k, out=own)
    shared = scores.view(-1, n_rows * n_queries, n_before + n)[..., :n_before]
    if before is not None:
        together = q.view(-1, n_rows * n_queries, d_head)  # [pair·head, row·query, d_head]
        torch.bmm(together, before.keys.flatten(0, 1).transpose(1, 2), out=shared)
    if attention.identity_a is not None:
        scores.addcmul_(attention.scaled_a[:, None, None, None], _match(rows, before)[:, None])
    pattern = torch.softmax(scores, -1, out=scores)
    z = own @ rows.values.reshape(-1, n, d_head)
    if before is not None:
        z.view(-1, n_rows * n_queries, d_head).baddbmm_(shared, before.values.flatten(0, 1))
    return z.view(n_pairs, n_heads, n_rows, n_queries, d_head), pattern


def _match(rows: Rows, before: Before | None) -> Tensor:
    """x·x of every query and key, [pair, row, query, key]."""
    assert rows.normed is not None
    assert rows.normed_queries is not None
    own = rows.normed_queries @ rows.normed.transpose(2, 3)
    if before is None or before.normed is None:
        return own
    shared = rows.normed_queries.flatten(1, 2) @ before.normed.transpose(1, 2)  # [pair, row·query, key]
    return torch.cat([shared.view(*own.shape[:3], -1), own], -1)


def add_attended(
    attention: Attention, x: Tensor, z: Tensor, pattern: Tensor, rows: Rows, before: Before | None
) -> Tensor:
    """The stream x [pair, row, query, d_model] with all heads added, as a new tensor."""
    mixed = z.permute(0, 2, 3, 1, 4).flatten(3)  # [pair, row, query, head·d_head]
    added = torch.addmm(x.reshape(-1, x.shape[-1]), mixed.view(-1, mixed.shape[-1]), attention.out.weight.T).view(
        x.shape
    )
    if attention.out.bias is not None:
        added += attention.out.bias
    if attention.identity_b is not None:
        weighted = torch.einsum("h,bhrqk->brqk", attention.scaled_b, pattern)
        added += _look(weighted, rows, before)
    return added


def _look(pattern: Tensor, rows: Rows, before: Before | None) -> Tensor:
    """pattern·x for a pattern [pair, row, query, key]: [pair, row, query, d_model]."""
    assert rows.normed is not None
    n_before = pattern.shape[-1] - rows.normed.shape[2]
    seen = pattern[..., n_before:] @ rows.normed
    if before is not None and before.normed is not None:
        seen += (pattern[..., :n_before].flatten(1, 2) @ before.normed).view(seen.shape)
    return seen


def split_results(attention: Attention, z: Tensor, pattern: Tensor, rows: Rows, before: Before | None) -> Tensor:
    """What each head adds to the stream, identity path included: [pair, row, query, head, d_model]."""
    results = torch.einsum("bhrqe,hem->brqhm", z, attention.W_O)
    if attention.identity_b is not None:
        for head, scale in enumerate(attention.scaled_b):
            results[..., head, :] += scale * _look(pattern[:, head], rows, before)
    return results
