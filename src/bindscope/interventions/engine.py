"""Continue runs of a transformer from changed residual streams, computing only what the change can reach.

A change in the residual stream that enters layer l at position p of a causal model reaches the layers from l on and the
positions from p on, and only one column of logits is asked for. So one run is cached, and every changed run starts in the
middle of it:

    >>> kept = run_whole(model, tokens, at)
    >>> logits = run_changed(kept, first=p, starts={2: streams, 3: others})  # [row, pair, output]

``starts`` maps a layer to the changed streams [row, pair, position, d_model] that enter it, of the positions from
``first`` on; or to those of the first few of them alone ([row, pair, 1, d_model], say), which saves the projections of
all others. The layers are swept once: rows that start in a layer join those on their way. What stands before ``first`` is
shared by all rows of a pair. In a bidirectional model a change reaches every position, so ``first`` must be 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.attend import Before, Projection, Rows, add_attended, attend, scaled_terms
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
    z: Tensor | None  # [layer, pair, position, head, d_head]: if asked for
    scaled: (
        Tensor | None
    )  # [layer, pair, position, head, d_model]: the identity-scaling terms beside z, if there are any
    end: Tensor  # [pair, d_model]: leaving the last layer at ``at``
    logits: Tensor  # [pair, output]

    @property
    def n_positions(self) -> int:
        return self.stream.shape[2]


@torch.no_grad()
def run_whole(model: Transformer | Parts, tokens: Tensor, at: int, also: Iterable[str] = ()) -> KeptRun:
    """Run ``model`` on rows [pair, position] and keep what continuing needs, and ``also`` middle or z.

    A model that has been taken apart for rows of this length may be given as its parts.
    """
    parts = model if isinstance(model, Parts) else take_apart(model, tokens.shape[1], at)
    return _keep_run(Sweep(parts, at, 0), tokens[:, : parts.n_positions], None, also)


def take_apart(model: Transformer, n_columns: int, at: int) -> Parts:
    """The model's parts for rows of ``n_columns`` of which column ``at`` is asked for."""
    check_evaluating(model)
    if not 0 <= at < n_columns:
        raise BindscopeError(f"column {at} was asked for; the rows have columns 0 to {n_columns - 1}.")
    return Parts(model, at + 1 if model.config.causal else n_columns)


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
    """Logits [row, pair, output] at column ``at`` of runs with changed streams; rows in the order of their layers.

    The pairs are all of the cached run, or those named by ``rows``, each as often as it is named. A start at layer
    ``n_layers`` gives the streams that leave the last layer, at ``at`` alone.
    """
    sweep = Sweep(kept.parts, kept.at, first, rows)
    *_, last = sweep.pass_layers(kept, starts)
    return kept.parts.model.to_logits(last[:, :, 0])


def _keep_run(sweep: Sweep, tokens: Tensor, kept: KeptRun | None, also: Iterable[str]) -> KeptRun:
    parts, (n_pairs, n) = sweep.parts, tokens.shape
    config = parts.config
    x = parts.embed(tokens, sweep.first)[None]  # [1, pair, position, d_model]
    stream = x.new_empty(config.n_layers, n_pairs, n, config.d_model)
    n_kept = n if kept is None else 0
    heads = x.new_empty(config.n_layers, 3, n_pairs, config.n_heads, n_kept, config.d_head)
    middle = torch.empty_like(stream) if "middle" in also else None
    kept_z = x.new_empty(*stream.shape[:3], config.n_heads, config.d_head) if "z" in also else None
    scaled = (
        x.new_empty(*stream.shape[:3], config.n_heads, config.d_model) if "z" in also and config.identity_vo else None
    )
    for layer in parts.layers:
        at, columns = layer.index, sweep.columns(layer)
        stream[at] = x[0]
        rows, before = (
            sweep.project_rows(layer, x, heads[at].unsqueeze(3) if kept is None else None),
            sweep.before(layer, kept),
        )
        z, pattern = attend(layer, rows, before, sweep.seen(layer), parts.workspace)
        entering = x[:, :, columns]
        x = add_attended(layer, entering.clone(), z, pattern, rows, before)
        if middle is not None:
            middle[at][:, columns] = x[0]
        if kept_z is not None:
            kept_z[at][:, columns] = z[:, :, 0].transpose(1, 2)
        if scaled is not None:
            scaled[at][:, columns] = scaled_terms(layer, pattern, rows, before)[0]
        x = layer.add_mlp(x, entering)
    end = x[0, :, 0]
    return KeptRun(
        parts, sweep.first + sweep.at, stream, heads, middle, kept_z, scaled, end, parts.model.to_logits(end)
    )


class Sweep:
    """Rows of the positions from ``first`` on, on their way up the layers."""

    def __init__(self, parts: Parts, at: int, first: int, rows: slice | Tensor = ALL) -> None:
        if first and not parts.config.causal:
            raise BindscopeError("run_changed: in a bidirectional model every position changes, so first must be 0.")
        self.parts, self.first, self.at, self.rows = parts, first, at - first, rows
        self.n = parts.n_positions - first
        self.everywhere, self.asked = Projection(parts, slice(first, None)), Projection(parts, slice(at, at + 1))
        self.bias = None if parts.bias is None else parts.bias[first:, first:]  # [query, key]

    def pass_layers(self, kept: KeptRun, starts: Mapping[int, Tensor]) -> Iterator[Tensor]:
        """The streams that leave each layer from the first start on, rows in the order of their starts: [row, pair, position, d_model].

        They are in the workspace and go on from there, so a change made to them in between is felt. What leaves the last layer is
        at ``at`` alone, together with the starts behind it.
        """
        config, n_pairs = self.parts.config, next(iter(starts.values())).shape[1]
        behind = starts.get(config.n_layers)
        inside = {layer: start for layer, start in sorted(starts.items()) if layer < config.n_layers}
        n_rows = sum(len(start) for start in inside.values())
        stream = self.parts.workspace.take("stream", n_rows, n_pairs, self.n, config.d_model)
        n_below, x = 0, stream[:0]
        for layer in self.parts.layers[min(starts) :]:
            start = inside.get(layer.index)
            x = stream[: n_below + (0 if start is None else len(start))]
            if start is not None:
                self.enter(layer, kept, start, x[n_below:])
            x = self.pass_layer(layer, kept, x, start, n_below)
            n_below = len(x)
            if layer.index < self.parts.last:
                yield x
        yield x if behind is None else behind if not n_below else torch.cat([x, behind])

    def enter(self, layer: Layer, kept: KeptRun, start: Tensor, x: Tensor) -> None:
        """Write the streams that start here to x [row, pair, position, d_model]; kept ones behind those that are given."""
        n_given = start.shape[2]
        x[:, :, :n_given] = start
        if n_given < self.n:
            x[:, :, n_given:] = kept.stream[layer.index][self.rows, self.first + n_given :]

    def pass_layer(self, layer: Layer, kept: KeptRun, x: Tensor, start: Tensor | None, n_below: int) -> Tensor:
        """Pass the streams x through the layer, in place; in the last layer only ``at`` leaves, as a new tensor."""
        if start is not None and self.saves(layer, start):
            rows = self.join_known(layer, kept, x, start, n_below)
        else:
            rows = self.project_rows(layer, x)
        before, last = self.before(layer, kept), layer.index == self.parts.last
        z, pattern = attend(layer, rows, before, self.seen(layer), self.parts.workspace)
        leaving = x[:, :, self.columns(layer)].clone() if last else x
        entering = leaving.clone() if layer.parallel else leaving
        return layer.add_mlp(add_attended(layer, leaving, z, pattern, rows, before), entering)

    def saves(self, layer: Layer, start: Tensor) -> bool:
        """Whether it pays to take from the cached run what a change of few positions leaves as it was."""
        n_known = start.shape[0] * start.shape[1] * (self.n - start.shape[2])
        return n_known > 0 and n_known * layer.qkv.numel() > WORTH_SAVING

    def project_rows(self, layer: Layer, x: Tensor, heads: Tensor | None = None) -> Rows:
        """Queries, keys and values of whole streams, in the workspace or written to ``heads``."""
        heads = self.take_heads(x) if heads is None else heads
        if layer.index < self.parts.last:
            self.everywhere.project(layer, x, heads)
            return self.as_rows(layer, x, heads[0], heads)
        columns = self.columns(layer)
        self.asked.project(layer, x[:, :, columns], heads[:1, ..., columns, :], slice(0, 1))
        self.everywhere.project(layer, x, heads[1:], slice(1, 3))
        return self.as_rows(layer, x, heads[0][..., columns, :], heads)

    def join_known(self, layer: Layer, kept: KeptRun, x: Tensor, start: Tensor, n_below: int) -> Rows:
        """Rows from below, and rows that have the kept queries, keys and values except at the positions given."""
        heads = self.take_heads(x)
        if n_below:
            self.project_rows(layer, x[:n_below], heads[:, :, :, :n_below])
        known = kept.heads[layer.index][:, self.rows, :, self.first :][:, :, :, None]
        joining = heads[:, :, :, n_below:]
        joining.copy_(known.expand_as(joining))
        n_given = start.shape[2]
        given = Projection(self.parts, slice(self.first, self.first + n_given))
        given.project(layer, start, joining[..., :n_given, :])
        return self.as_rows(layer, x, heads[0][..., self.columns(layer), :], heads)

    def take_heads(self, x: Tensor) -> Tensor:
        """Room for the queries, keys and values of streams x, [q·k·v, pair, head, row, position, d_head]."""
        config = self.parts.config
        return self.parts.workspace.take("heads", 3, x.shape[1], config.n_heads, len(x), self.n, config.d_head)

    def as_rows(self, layer: Layer, x: Tensor, queries: Tensor, heads: Tensor) -> Rows:
        normed = layer.norm1(x) if self.parts.identity else None
        return Rows(queries, heads[1], heads[2], normed, None if normed is None else normed[:, :, self.columns(layer)])

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
