"""Replace what one head, or one MLP, adds to the residual stream, each in turn: the other grids, and ablation.

>>> zero = replace_heads(model, tokens, at, lambda layer, rows: torch.zeros(()))   # [layer, head, row, output]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.chunks import Chunk, as_slice, near_groups, pairs_at_once, run_chunks, tokens_at_once
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.engine import KeptRun, run_changed, run_whole
from bindscope.interventions.parts import Parts
from bindscope.model.transformer import Transformer

Progress = Callable[[int, int], None] | None
Replacement = Callable[[int, Tensor], Tensor]
RowsRun = tuple[Tensor, KeptRun]  # which rows, and their run
Arrive = Callable[[int, slice | Tensor, slice], Tensor]  # (layer, pairs, columns) → [row, pair, position, d_model]
Change = Callable[[int, slice | Tensor, slice], Tensor]  # (layer, pairs, columns) → [head, pair, position, d_model]
HEADS_NEED = ("middle", "z")
MOST_PARTS = 4  # of ``KEPT_BYTES`` each, that are kept for several calls


def replace_heads(
    model: Transformer,
    tokens: Tensor,
    at: int,
    replacement: Replacement,
    *,
    at_positions: Tensor | None = None,
    runs: Sequence[RowsRun] | None = None,
    on_progress: Progress = None,
) -> Tensor:
    """Logits [layer, head, row, output] at column ``at`` with each head's whole output replaced in turn.

    ``replacement(layer, rows)`` gives what every head of the layer adds instead, identity-scaling term included, in a shape
    that broadcasts to [row, position, head, d_model]: zeros, means, or the results of other rows. ``at_positions``
    [row, position] marks where; default: everywhere. Positions end with ``at``
    in causal models. Who replaces several times in the same rows gives their ``runs`` (``keep_runs``).
    """
    logits = model.W_E.new_empty(model.config.n_layers, model.config.n_heads, len(tokens), model.config.outputs)
    for rows, kept in _run_rows(model, tokens, at, HEADS_NEED) if runs is None else runs:
        marked, first = mark_positions(model, kept, at_positions, rows)
        arrive = head_arrivals(model, kept, _replace_results(kept, replacement, rows), marked)
        found = sweep_groups(model, kept, first, range(model.config.n_layers), arrive, model.config.n_heads, marked)
        logits[:, :, rows] = found
        del kept, arrive  # so that the next ones find the memory free
        if on_progress is not None:
            on_progress(int(rows[-1]) + 1, len(tokens))
    return logits


def keep_runs(model: Transformer, tokens: Tensor, at: int) -> list[RowsRun] | None:
    """The runs of all rows, for several calls of ``replace_heads``; None where they would take too much memory.

    >>> runs = keep_runs(model, tokens, at)
    >>> zero, mean = (replace_heads(model, tokens, at, each, runs=runs) for each in (zeros, means))
    """
    if len(tokens) > MOST_PARTS * pairs_at_once(model, tokens.shape[1], HEADS_NEED):
        return None
    return list(_run_rows(model, tokens, at, HEADS_NEED))


def replace_mlps(
    model: Transformer,
    tokens: Tensor,
    at: int,
    replacement: Replacement,
    *,
    at_positions: Tensor | None = None,
    on_progress: Progress = None,
) -> Tensor:
    """The same for MLPs: logits [layer, row, output]; ``replacement`` broadcasts to [row, position, d_model].

    The layers are those that have an MLP, in order.
    """
    layers = layers_with_mlp(model)
    logits = model.W_E.new_empty(len(layers), len(tokens), model.config.outputs)
    for rows, kept in _run_rows(model, tokens, at, ("middle",)):
        marked, first = mark_positions(model, kept, at_positions, rows)
        arrive = mlp_arrivals(model, kept, partial(_replace_rows, replacement, rows), marked)
        logits[:, rows] = sweep_groups(model, kept, first, layers, arrive, 1, marked)[:, 0]
        del kept, arrive
        if on_progress is not None:
            on_progress(int(rows[-1]) + 1, len(tokens))
    return logits


def _replace_rows(replacement: Replacement, rows: Tensor, layer: int) -> Tensor:
    return replacement(layer, rows)


@dataclass(frozen=True, eq=False)
class PatchedPairs:
    """The logits of some pairs with each head, or each MLP, taken from the source in turn."""

    pairs: Tensor  # [pair]: which of the contrast's
    logits: Tensor  # [layer, head, pair, output]; for MLPs [layer, pair, output]
    base_logits: Tensor  # [pair, output]
    source_logits: Tensor  # [pair, output]


def patch_heads(
    model: Transformer,
    contrast: Contrast,
    at_positions: Tensor | None = None,
    source_model: Transformer | None = None,
) -> Iterator[PatchedPairs]:
    """Take all that one head adds from the source, each head in turn, some pairs at a time."""
    for (found,) in patch_heads_at(model, contrast, [at_positions], source_model):
        yield found


def patch_heads_at(
    model: Transformer,
    contrast: Contrast,
    at_positions: Sequence[Tensor | None],
    source_model: Transformer | None = None,
) -> Iterator[list[PatchedPairs]]:
    """The same at one choice of positions after another; base and source are run once for all of them."""
    n_heads, layers = model.config.n_heads, range(model.config.n_layers)
    for chunk in run_chunks(model, contrast, source_model, HEADS_NEED):
        base, source, found = chunk.base, chunk.source, []
        for marks in at_positions:
            marked, first = mark_positions(model, base, marks, chunk.pairs, chunk.first)
            arrive = head_arrivals(model, base, _take_source(chunk), marked)
            logits = sweep_groups(model, base, first, layers, arrive, n_heads, marked)
            found.append(PatchedPairs(chunk.pairs, logits, base.logits, source.logits))
            del arrive
        yield found
        del chunk, base, source


def patch_mlps(
    model: Transformer,
    contrast: Contrast,
    at_positions: Tensor | None = None,
    source_model: Transformer | None = None,
) -> Iterator[PatchedPairs]:
    """The same for MLPs, in the layers that have one."""
    layers = layers_with_mlp(model)
    for chunk in run_chunks(model, contrast, source_model, ("middle",)):
        base, source = chunk.base, chunk.source
        marked, first = mark_positions(model, base, at_positions, chunk.pairs, chunk.first)
        arrive = mlp_arrivals(model, base, source.mlp_out, marked)
        logits = sweep_groups(model, base, first, layers, arrive, 1, marked)[:, 0]
        yield PatchedPairs(chunk.pairs, logits, base.logits, source.logits)
        del chunk, base, source, arrive


def layers_with_mlp(model: Transformer) -> tuple[int, ...]:
    """The layers that have an MLP; a model without any is refused."""
    layers = tuple(sorted(model.config.layers_with_mlp))
    if not layers:
        raise BindscopeError("no layer of this model has an MLP.")
    return layers


def _run_rows(model: Transformer, tokens: Tensor, at: int, also: tuple[str, ...]) -> Iterator[RowsRun]:
    n_kept = at + 1 if model.config.causal else tokens.shape[1]
    for rows in torch.arange(len(tokens)).split(pairs_at_once(model, n_kept, also)):
        yield rows, run_whole(model, tokens[rows], at, also)


def mark_positions(
    model: Transformer, kept: KeptRun, at_positions: Tensor | None, rows: Tensor, first: Tensor | None = None
) -> tuple[Tensor | None, Tensor]:
    """Which kept positions are marked, [pair, position] or all, and the first from which anything can change, [pair]."""
    n_pairs = len(kept.logits)
    first = torch.zeros(n_pairs, dtype=torch.long) if first is None else first
    if at_positions is None:
        return None, first
    marked = at_positions[rows, : kept.n_positions]
    if not model.config.causal:
        return marked, first
    earliest = torch.where(marked.any(1), marked.int().argmax(1), kept.n_positions)
    return marked, torch.maximum(first, earliest)


def head_arrivals(model: Transformer, kept: KeptRun, change: Change, marked: Tensor | None) -> Arrive:
    """What leaves a layer with what each of its heads adds changed in turn, [head, pair, position, d_model]."""
    assert kept.middle is not None
    middle = kept.middle

    def arrive(layer: int, rows: slice | Tensor, columns: slice) -> Tensor:
        changed = change(layer, rows, columns)  # [head, pair, position, d_model]
        if marked is not None:
            changed *= marked[rows, columns][:, :, None].to(changed.device)
        changed += middle[layer][rows, columns]
        return kept.parts.layers[layer].add_mlp(changed, kept.stream[layer][rows, columns])

    return arrive


def _take_source(chunk: Chunk) -> Change:
    """The change of every head's output from the base run to the source run."""
    base, source = chunk.base, chunk.source

    def change(layer: int, rows: slice | Tensor, columns: slice) -> Tensor:
        assert base.z is not None
        assert source.z is not None
        old, new = base.z[layer][rows, columns], source.z[layer][rows, columns]
        if source.parts is base.parts:
            result = _head_results(base.parts, layer, new - old)
        else:
            result = _head_results(source.parts, layer, new) - _head_results(base.parts, layer, old)
        if base.scaled is not None and source.scaled is not None:
            result += (source.scaled[layer] - base.scaled[layer])[rows, columns].permute(2, 0, 1, 3)
        return result

    return change


def _replace_results(kept: KeptRun, replacement: Replacement, batch_rows: Tensor) -> Change:
    """The change of every head's output from what it is to ``replacement``."""

    def change(layer: int, rows: slice | Tensor, columns: slice) -> Tensor:
        assert kept.z is not None
        old = _head_results(kept.parts, layer, kept.z[layer][rows, columns])
        if kept.scaled is not None:
            old += kept.scaled[layer][rows, columns].permute(2, 0, 1, 3)
        shape = (*kept.stream.shape[1:3], len(old), old.shape[-1])  # [row, position, head, d_model]
        new = replacement(layer, batch_rows).expand(shape)[rows, columns]
        return old.neg_().add_(new.permute(2, 0, 1, 3))

    return change


def _head_results(parts: Parts, layer: int, z: Tensor) -> Tensor:
    """What z [pair, position, head, d_head] adds to the residual stream, head by head: [head, pair, position, d_model]."""
    by_head = parts.layers[layer].by_head
    return torch.bmm(z.permute(2, 0, 1, 3).flatten(1, 2), by_head).unflatten(1, z.shape[:2])


def mlp_arrivals(
    model: Transformer, kept: KeptRun, replacement: Callable[[int], Tensor], marked: Tensor | None
) -> Arrive:
    """What leaves a layer with its MLP replaced, [1, pair, position, d_model]."""
    assert kept.middle is not None
    middle = kept.middle

    def arrive(layer: int, rows: slice | Tensor, columns: slice) -> Tensor:
        new = middle[layer][rows, columns] + replacement(layer).expand_as(middle[layer])[rows, columns]
        if marked is not None:
            last = layer == model.config.n_layers - 1
            old = kept.end[rows][:, None] if last else kept.stream[layer + 1][rows, columns]
            new = torch.where(marked[rows, columns][:, :, None].to(new.device), new, old)
        return new[None]

    return arrive


@torch.no_grad()
def sweep_groups(
    model: Transformer,
    kept: KeptRun,
    first: Tensor,
    layers: range | tuple[int, ...],
    arrive: Arrive,
    n_rows: int,
    marked: Tensor | None = None,
) -> Tensor:
    """Logits [layer, row, pair, output] of changes that leave each layer in turn, from position ``first`` [pair] on; only at the
    positions ``marked`` [pair, position], if they are."""
    logits = kept.logits.repeat(len(layers), n_rows, 1, 1)
    changing = (first < kept.n_positions).nonzero()[:, 0]
    end = model.config.n_layers - 1
    for position, group in near_groups(first[changing], kept.parts, len(layers) * n_rows):
        rows = changing[group]
        n_tokens = len(layers) * n_rows * (kept.n_positions - position)
        for part in rows.split(max(1, tokens_at_once(model) // n_tokens)):
            taken = as_slice(part)
            given = slice(position, None if marked is None else _find_stop(marked[part], position))
            starts = {
                layer + 1: arrive(layer, taken, given if layer < end else slice(kept.at, kept.at + 1))
                for layer in layers
            }
            found = run_changed(kept, position, starts, taken)  # [layer·row, pair, output]
            logits[:, :, taken] = found.unflatten(0, (len(layers), n_rows))
    return logits


def _find_stop(marked: Tensor, first: int) -> int:
    """The position behind the last of the marks [pair, position], from which on streams leave the layer as in the base run."""
    columns = marked.any(0).nonzero()[:, 0]
    return max(first, int(columns[-1]) if len(columns) else 0) + 1
