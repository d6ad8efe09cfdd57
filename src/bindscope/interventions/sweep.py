"""Rows of changed streams on their way up the layers of a transformer."""

from __future__ import annotations

import torch
from torch import Tensor

from bindscope.interventions.attend import Before, Projection, Rows, add_attended, attend
from bindscope.interventions.kept_run import KeptRun
from bindscope.interventions.parts import Layer, Parts

WORTH_SAVING = 5 * 10**6  # multiplications: below that, calling more operations costs more than computing them would
ALL = slice(None)


class Sweep:
    """Rows of the positions from ``first`` on, on their way up the layers."""

    def __init__(self, parts: Parts, at: int, first: int, rows: slice | Tensor = ALL) -> None:
        self.parts, self.first, self.at, self.rows = parts, first, at - first, rows
        self.n = parts.n_positions - first
        self.everywhere, self.asked = Projection(parts, slice(first, None)), Projection(parts, slice(at, at + 1))
        self.bias = None if parts.bias is None else parts.bias[first:, first:]  # [query, key]

    def pass_layer(self, layer: Layer, kept: KeptRun, x: Tensor | None, start: Tensor | None) -> Tensor:
        """The streams that leave the layer: those that came from below, ``x``, then those that start here."""
        below, x = x, self.join_stream(layer, kept, x, start)
        if start is not None and self.saves(layer, start):
            rows = self.join_known(layer, kept, below, start, x)
        else:
            rows = self.project_rows(layer, x)
        before = self.before(layer, kept)
        z, pattern = attend(layer, rows, before, self.seen(layer))
        entering = x[:, :, self.columns(layer)]
        return layer.add_mlp(add_attended(layer, entering, z, pattern, rows, before), entering)

    def join_stream(self, layer: Layer, kept: KeptRun, x: Tensor | None, start: Tensor | None) -> Tensor:
        """The streams that enter the layer, those that start here last."""
        parts = [] if x is None else [x]
        if start is not None:
            parts.append(start if start.shape[2] == self.n else self.fill_stream(layer, kept, start))
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def saves(self, layer: Layer, start: Tensor) -> bool:
        """Whether it pays to take from the cached run what a change of one position leaves as it was."""
        n_known = start.shape[0] * start.shape[1] * (self.n - start.shape[2])
        return n_known > 0 and n_known * layer.qkv.numel() > WORTH_SAVING

    def project_rows(self, layer: Layer, x: Tensor) -> Rows:
        """Queries, keys and values of whole streams."""
        y = layer.norm1(x)
        normed = y if self.parts.identity else None
        if layer.index < self.parts.last:
            queries, keys, values = self.everywhere.project(layer, y)
            return Rows(queries, keys, values, normed, normed)
        asked = y[:, :, self.columns(layer)]
        queries = self.asked.project(layer, asked, slice(0, 1))[0]
        keys, values = self.everywhere.project(layer, y, slice(1, 3))
        return Rows(queries, keys, values, normed, None if normed is None else asked)

    def fill_stream(self, layer: Layer, kept: KeptRun, start: Tensor) -> Tensor:
        """The kept streams, with those of position ``first`` replaced."""
        stream = kept.stream[layer.index][self.rows, self.first :][:, None].expand(-1, start.shape[1], -1, -1)
        stream = stream.clone(memory_format=torch.contiguous_format)
        stream[:, :, :1] = start
        return stream

    def join_known(self, layer: Layer, kept: KeptRun, below: Tensor | None, start: Tensor, x: Tensor) -> Rows:
        """Rows from below, and rows that have the kept queries, keys and values except at position ``first``."""
        heads = kept.heads[layer.index][:, self.rows, :, self.first :][:, :, :, None].expand(
            -1, -1, -1, start.shape[1], -1, -1
        )
        heads = heads.clone(memory_format=torch.contiguous_format)
        heads[..., :1, :] = Projection(self.parts, slice(self.first, self.first + 1)).project(layer, layer.norm1(start))
        columns = self.columns(layer)
        queries, keys, values = heads[0][..., columns, :], heads[1], heads[2]
        if below is not None:
            rows = self.project_rows(layer, below)
            queries, keys = torch.cat([rows.queries, queries], 2), torch.cat([rows.keys, keys], 2)
            values = torch.cat([rows.values, values], 2)
        normed = layer.norm1(x) if self.parts.identity else None
        return Rows(queries, keys, values, normed, None if normed is None else normed[:, :, columns])

    def before(self, layer: Layer, kept: KeptRun | None) -> Before | None:
        """What the rows see of earlier positions, which is as in the cached run."""
        if kept is None or self.first == 0:
            return None
        _, keys, values = kept.heads[layer.index]
        keys, values = keys[self.rows, :, : self.first], values[self.rows, :, : self.first]
        stream = kept.stream[layer.index]
        return Before(keys, values, layer.norm1(stream[self.rows, : self.first]) if self.parts.identity else None)

    def columns(self, layer: Layer) -> slice:
        """The positions that have to leave the layer: all, or in the last layer the asked one."""
        return slice(self.at, self.at + 1) if layer.index == self.parts.last else slice(None)

    def seen(self, layer: Layer) -> Tensor | None:
        """The bias of the queries at ``columns``."""
        return None if self.bias is None else self.bias[self.columns(layer)]
