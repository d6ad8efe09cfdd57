"""Continue runs of a transformer from changed residual streams, computing only what the change can reach.

A change in the stream that enters layer l at position p of a causal model reaches the layers from l on and the
positions from p on, and only one column of logits is asked for. So one run is kept, and every changed run starts in the
middle of it:

    >>> kept = run_whole(model, tokens, at)
    >>> logits = run_changed(model, kept, first=p, starts={2: streams, 3: others})  # [pair, row, output]

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
from bindscope.interventions.attend import (
    Before,
    Rows,
    Turn,
    add_attended,
    attend,
    join_rows,
    project,
    project_asked,
    split_results,
)
from bindscope.model.transformer import Block, Transformer

MLP_TILE = 2**20  # hidden activations computed at once: few enough to stay near the processor


@dataclass(frozen=True, eq=False)
class KeptRun:
    """What a run leaves for others, layer by layer, from position ``first`` to ``at`` (bidirectional: to the end).

    Of the last layer only position ``at`` is computed, except for keys and values. Queries and keys are rotated, queries
    divided by √d_head.
    """

    first: int
    at: int
    stream: Tensor  # [layer, pair, position, d_model]: entering each layer
    heads: Tensor  # [layer, q·k·v, pair, head, position, d_head]
    middle: Tensor | None  # [layer, pair, position, d_model]: between attention and MLP, if asked for
    results: Tensor | None  # [layer, pair, position, head, d_model]: what each head adds, if asked for
    end: Tensor  # [pair, d_model]: leaving the last layer at ``at``
    logits: Tensor  # [pair, output]

    def take(self, rows: slice | Tensor) -> KeptRun:
        """Only these pairs."""
        stream, heads = self.stream[:, rows], self.heads[:, :, rows]
        middle, results = (None if part is None else part[:, rows] for part in (self.middle, self.results))
        return KeptRun(self.first, self.at, stream, heads, middle, results, self.end[rows], self.logits[rows])

    @property
    def n_positions(self) -> int:
        return self.stream.shape[2]


def run_whole(model: Transformer, tokens: Tensor, at: int, also: Iterable[str] = ()) -> KeptRun:
    """Run ``model`` on rows [pair, position] and keep what continuing needs, and ``also`` middle or results."""
    if model.training and model.config.dropout > 0:
        raise BindscopeError("this model is in training mode and drops activations at random; call model.eval() first.")
    if not 0 <= at < tokens.shape[1]:
        raise BindscopeError(f"column {at} was asked for; the rows have columns 0 to {tokens.shape[1] - 1}.")
    if model.config.causal:
        tokens = tokens[:, : at + 1]
    return _keep_run(model, tokens, at, None, 0, also)


def run_rest(model: Transformer, kept: KeptRun, tokens: Tensor, first: int, also: Iterable[str] = ()) -> KeptRun:
    """Run rows whose tokens equal those of the kept run before position ``first``.

    >>> source = run_rest(model, kept, contrast.source, first=10)
    """
    return _keep_run(model, tokens[:, first : kept.n_positions], kept.at, kept, first, also)


@torch.no_grad()
def run_changed(model: Transformer, kept: KeptRun, first: int, starts: Mapping[int, Tensor]) -> Tensor:
    """Logits [pair, row, output] at column ``at`` of runs with changed streams; rows in the order of their layers.

    A start at layer ``n_layers`` gives the streams that leave the last layer, at ``at`` alone.
    """
    if first and not model.config.causal:
        raise BindscopeError("run_changed: in a bidirectional model every position changes, so first must be 0.")
    sweep = Sweep(model, first, kept.n_positions, kept.at)
    x: Tensor | None = None  # [pair, row, position, d_model]
    for block in model.layers[min(starts) :]:
        x = sweep.pass_layer(block, kept, x, starts.get(block.layer))
    ends = [part for part in (x, starts.get(model.config.n_layers)) if part is not None]
    return model.to_logits(torch.cat(ends, 1)[:, :, 0])


@torch.no_grad()
def _keep_run(
    model: Transformer, tokens: Tensor, at: int, kept: KeptRun | None, first: int, also: Iterable[str]
) -> KeptRun:
    config, (n_pairs, n) = model.config, tokens.shape
    sweep = Sweep(model, first, first + n, at)
    x = _embed(model, tokens, first)[:, None]  # [pair, 1, position, d_model]
    stream = x.new_empty(config.n_layers, n_pairs, n, config.d_model)
    middle = torch.empty_like(stream) if "middle" in also else None
    heads = x.new_empty(config.n_layers, 3, n_pairs, config.n_heads, n, config.d_head)
    shares = x.new_empty(config.n_layers, n_pairs, n, config.n_heads, config.d_model) if "results" in also else None
    for layer, block in enumerate(model.layers):
        stream[layer] = x[:, 0]
        columns = sweep.columns(block)
        rows, before = sweep.project_rows(block, x), sweep.before(block, kept)
        heads[layer, 0][:, :, columns] = rows.queries[:, :, 0]
        heads[layer, 1], heads[layer, 2] = rows.keys[:, :, 0], rows.values[:, :, 0]
        z, pattern = attend(block.attention, rows, before, sweep.seen(block))
        x = add_attended(block.attention, x[:, :, columns], z, pattern, rows, before)
        if middle is not None:
            middle[layer][:, columns] = x[:, 0]
        if shares is not None:
            shares[layer][:, columns] = split_results(block.attention, z, pattern, rows, before)[:, 0]
        add_mlp(block, x)
    end = x[:, 0, 0]
    return KeptRun(first, at, stream, heads, middle, shares, end, model.to_logits(end))


def _embed(model: Transformer, tokens: Tensor, first: int) -> Tensor:
    x = model.embed(tokens)
    if model.config.positions in ("learned", "normal"):
        x = x + model.pos_embed[first : first + tokens.shape[1]]
    return x


class Sweep:
    """Rows of the positions from ``first`` on, on their way up the layers."""

    def __init__(self, model: Transformer, first: int, n_positions: int, at: int) -> None:
        self.first, self.at, self.last = first, at - first, model.config.n_layers - 1
        self.identity = model.config.identity_qk or model.config.identity_vo
        self.turn = Turn(model, torch.arange(first, n_positions, device=model.W_E.device))
        self.bias: Tensor | None = None  # [query, key]
        if model.config.causal:
            self.bias = model.W_E.new_full((n_positions - first, n_positions - first), -torch.inf).triu_(1)

    def pass_layer(self, block: Block, kept: KeptRun, x: Tensor | None, start: Tensor | None) -> Tensor:
        """The streams that leave the layer: those that came from below, ``x``, then those that start here."""
        streams, parts = [], []
        if x is not None:
            streams.append(x)
            parts.append(self.project_rows(block, x))
        if start is not None and start.shape[2] < kept.n_positions - self.first:
            streams.append(self.fill_stream(block, kept, start))
            parts.append(self.fill_rows(block, kept, start, streams[-1]))
        elif start is not None:
            streams.append(start)
            parts.append(self.project_rows(block, start))
        columns, before = self.columns(block), self.before(block, kept)
        rows = parts[0] if len(parts) == 1 else join_rows(*parts)
        x = streams[0][:, :, columns] if len(streams) == 1 else torch.cat([part[:, :, columns] for part in streams], 1)
        z, pattern = attend(block.attention, rows, before, self.seen(block))
        x = add_attended(block.attention, x, z, pattern, rows, before)
        return add_mlp(block, x)

    def project_rows(self, block: Block, x: Tensor) -> Rows:
        """Queries, keys and values of whole streams."""
        y = block.norm1(x)
        normed = y if self.identity else None
        if block.layer == self.last:
            queries, (keys, values) = project_asked(block.attention, y, self.turn, self.at)
            return Rows(queries, keys, values, normed, None if normed is None else y[:, :, self.columns(block)])
        queries, keys, values = project(block.attention, y, self.turn)
        return Rows(queries, keys, values, normed, normed)

    def fill_stream(self, block: Block, kept: KeptRun, start: Tensor) -> Tensor:
        """The kept streams, with those of position ``first`` replaced."""
        stream = kept.stream[block.layer][:, None, self.first :].repeat(1, start.shape[1], 1, 1)
        stream[:, :, :1] = start
        return stream

    def fill_rows(self, block: Block, kept: KeptRun, start: Tensor, stream: Tensor) -> Rows:
        """The kept queries, keys and values, with those of position ``first`` replaced."""
        heads = kept.heads[block.layer][:, :, :, None, self.first :].repeat(1, 1, 1, start.shape[1], 1, 1)
        heads[..., :1, :] = project(block.attention, block.norm1(start), self.turn.at(0))
        normed = block.norm1(stream) if self.identity else None
        columns = self.columns(block)
        asked = None if normed is None else normed[:, :, columns]
        return Rows(heads[0][..., columns, :], heads[1], heads[2], normed, asked)

    def before(self, block: Block, kept: KeptRun | None) -> Before | None:
        """What the rows see of earlier positions, which is as in the kept run."""
        if kept is None or self.first == 0:
            return None
        keys, values = kept.heads[block.layer, 1:, :, :, : self.first]
        return Before(keys, values, block.norm1(kept.stream[block.layer][:, : self.first]) if self.identity else None)

    def columns(self, block: Block) -> slice:
        """The positions that have to leave the layer: all, or in the last layer the asked one."""
        return slice(self.at, self.at + 1) if block.layer == self.last else slice(None)

    def seen(self, block: Block) -> Tensor | None:
        """The bias of the queries at ``columns``."""
        return None if self.bias is None else self.bias[self.columns(block)]


def add_mlp(block: Block, x: Tensor) -> Tensor:
    """Add the layer's MLP, if it has one, to streams [..., d_model], in place and tile by tile."""
    if block.mlp is None or block.norm2 is None:
        return x
    mlp, tokens = block.mlp, x.view(-1, x.shape[-1])
    for tile in tokens.split(max(256, MLP_TILE // mlp.up.out_features)):
        hidden = mlp.activation(mlp.up(block.norm2(tile)))
        tile.addmm_(hidden, mlp.down.weight.T)
    if mlp.down.bias is not None:
        tokens += mlp.down.bias
    return x
