"""Continue runs of a transformer from changed residual streams, computing only what the change can reach.

A change in the residual stream that enters layer l at position p of a causal model reaches the layers from l on and the
positions from p on, and only one column of logits is asked for. So one run is cached, and every changed run starts in the
middle of it:

    >>> kept = run_whole(model, tokens, at)
    >>> logits = run_changed(kept, first=p, starts={2: streams, 3: others})  # [pair, row, output]

``starts`` maps a layer to the changed streams [pair, row, position, d_model] that enter it, of the positions from
``first`` on; or to those of position ``first`` alone ([pair, row, 1, d_model]), which saves the projections of all
others. The layers are swept once: rows that start in a layer join those on their way. What stands before ``first`` is
shared by all rows of a pair. In a bidirectional model a change reaches every position, so ``first`` must be 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.attend import Before, Projection, Rows, add_attended, attend, split_results
from bindscope.interventions.parts import Layer, Parts
from bindscope.model.run import check_evaluating
from bindscope.model.transformer import Transformer

WORTH_SAVING = 5 * 10**6  # multiplications: below that, calling more operations costs more than computing them would

ALL = slice(None)


@dataclass(frozen=True, eq=False)
class KeptRun:
    """What a run leaves for others, layer by layer, from some first position to ``at`` (bidirectional: to the end).

    Of the last layer only position ``at`` is computed, except for keys and values. Queries and keys are rotated, queries
    divided by √d_head.
    """

    parts: Parts
    at: int
    stream: Tensor  # [layer, pair, position, d_model]: entering each layer
    heads: Tensor  # [layer, q·k·v, pair, head, position, d_head]; of a rest, no positions
    middle: Tensor | None  # [layer, pair, position, d_model]: with attention added and no MLP yet, if asked for
    results: Tensor | None  # [layer, pair, position, head, d_model]: what each head adds, if asked for
    end: Tensor  # [pair, d_model]: leaving the last layer at ``at``
    logits: Tensor  # [pair, output]

    @property
    def n_positions(self) -> int:
        return self.stream.shape[2]


@torch.no_grad()
def run_whole(model: Transformer, tokens: Tensor, at: int, also: Iterable[str] = ()) -> KeptRun:
    """Run ``model`` on rows [pair, position] and keep what continuing needs, and ``also`` middle or results."""
    check_evaluating(model)
    if not 0 <= at < tokens.shape[1]:
        raise BindscopeError(f"column {at} was asked for; the rows have columns 0 to {tokens.shape[1] - 1}.")
    if model.config.causal:
        tokens = tokens[:, : at + 1]
    return _keep_run(Sweep(Parts(model, tokens.shape[1]), at, 0), tokens, None, also)


@torch.no_grad()
def run_rest(
    kept: KeptRun, tokens: Tensor, first: int, also: Iterable[str] = (), rows: slice | Tensor = ALL
) -> KeptRun:
    """Run rows whose tokens equal those of the kept ``rows`` before position ``first``; keep the positions from there on.

    >>> source = run_rest(kept, contrast.source, first=10)
    """
    return _keep_run(Sweep(kept.parts, kept.at, first, rows), tokens[:, first : kept.n_positions], kept, also)


@torch.no_grad()
def run_changed(kept: KeptRun, first: int, starts: Mapping[int, Tensor], rows: slice | Tensor = ALL) -> Tensor:
    """Logits [pair, row, output] at column ``at`` of runs with changed streams; rows in the order of their layers.

    The pairs are all of the cached run, or those named by ``rows``, each as often as it is named. A start at layer
    ``n_layers`` gives the streams that leave the last layer, at ``at`` alone.
    """
    parts = kept.parts
    if first and not parts.config.causal:
        raise BindscopeError("run_changed: in a bidirectional model every position changes, so first must be 0.")
    sweep = Sweep(parts, kept.at, first, rows)
    x: Tensor | None = None  # [pair, row, position, d_model]
    for layer in parts.layers[min(starts) :]:
        x = sweep.pass_layer(layer, kept, x, starts.get(layer.index))
    ends = [part for part in (x, starts.get(parts.config.n_layers)) if part is not None]
    return parts.model.to_logits(torch.cat(ends, 1)[:, :, 0])


def _keep_run(sweep: Sweep, tokens: Tensor, kept: KeptRun | None, also: Iterable[str]) -> KeptRun:
    parts, (n_pairs, n) = sweep.parts, tokens.shape
    config = parts.config
    x = parts.embed(tokens, sweep.first)[:, None]  # [pair, 1, position, d_model]
    stream = x.new_empty(config.n_layers, n_pairs, n, config.d_model)
    n_kept = n if kept is None else 0
    heads = x.new_empty(config.n_layers, 3, n_pairs, config.n_heads, n_kept, config.d_head)
    middle = torch.empty_like(stream) if "middle" in also else None
    results = x.new_empty(*stream.shape[:3], config.n_heads, config.d_model) if "results" in also else None
    for layer in parts.layers:
        at, columns = layer.index, sweep.columns(layer)
        stream[at] = x[:, 0]
        rows, before = sweep.project_rows(layer, x), sweep.before(layer, kept)
        if kept is None:
            heads[at, 0][:, :, columns] = rows.queries[:, :, 0]
            heads[at, 1], heads[at, 2] = rows.keys[:, :, 0], rows.values[:, :, 0]
        z, pattern = attend(layer, rows, before, sweep.seen(layer))
        entering = x[:, :, columns]
        x = add_attended(layer, entering, z, pattern, rows, before)
        if middle is not None:
            middle[at][:, columns] = x[:, 0]
        if results is not None:
            results[at][:, columns] = split_results(layer, z, pattern, rows, before)[:, 0]
        x = layer.add_mlp(x, entering)
    end = x[:, 0, 0]
    return KeptRun(parts, sweep.first + sweep.at, stream, heads, middle, results, end, parts.model.to_logits(end))


class Sweep:
    """Rows of the positions from ``first`` on, on their way up the layers."""

    def __init__(self, parts: Parts, at: int, first: int, rows: slice | Tensor = ALL) -> None:
        self.parts, self.first, self.at, self.rows = parts, first, at - first, rows
        self.n = parts.n_positions - first
        self.everywhere, self.asked = Projection(parts, slice(first, None)), Projection(parts, slice(at, at + 1))
        self.bias = None if parts.bias is None else parts.bias[first:, first:]  # [query, key]

    def pass_layer(self, layer: Layer, kept: KeptRun, x: Tensor | None, start: Tensor | None) -> Tensor:
        """The streams that leave the layer: those that came from below, ``x``, then those that start here."""
        below = x
        if start is not None:
            stream = start if start.shape[2] == self.n else self.fill_stream(layer, kept, start)
            x = stream if x is None else torch.cat([x, stream], 1)
        assert x is not None
        if start is not None and self.saves(layer, start):
            rows = self.join_known(layer, kept, below, start, x)
        else:
            rows = self.project_rows(layer, x)
        before = self.before(layer, kept)
        z, pattern = attend(layer, rows, before, self.seen(layer))
        entering = x[:, :, self.columns(layer)]
        return layer.add_mlp(add_attended(layer, entering, z, pattern, rows, before), entering)

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
