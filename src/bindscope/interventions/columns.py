"""Interchange at one position of the residual stream, every layer at once: the columns of a residual grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.interventions.chunks import TOKENS_AT_ONCE, Chunk, as_slice, equal_groups, run_chunks
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.engine import run_changed
from bindscope.model.transformer import Transformer

NEEDS_MIDDLE = {"resid_pre": False, "resid_post": False, "resid_mid": True, "attn_out": True, "mlp_out": True}


@dataclass(frozen=True, eq=False)
class Column:
    """The logits of some pairs, changed at one position in each of the site's layers in turn."""

    position: int
    pairs: Tensor  # [pair]: which of the contrast's
    logits: Tensor  # [layer, pair, output]
    base_logits: Tensor  # [pair, output]
    source_logits: Tensor  # [pair, output]


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Changed streams on their way: ``values`` enter layer ``start`` (behind the last layer: at ``at`` alone)."""

    start: int
    values: Tensor  # [pair, position, d_model]
    changed: Tensor  # [pair, position]: where they are not what the base run has


def site_layers(model: Transformer, site: str) -> tuple[int, ...]:
    """The layers that have this site."""
    if site not in NEEDS_MIDDLE:
        raise BindscopeError(
            f"a residual grid has no site '{site}'; it has {', '.join(NEEDS_MIDDLE)}.{suggest_nearest(site, NEEDS_MIDDLE)}"
        )
    layers = model.config.layers_with_mlp if site in ("resid_mid", "mlp_out") else tuple(range(model.config.n_layers))
    if not layers:
        raise BindscopeError(f"no layer of this model has an MLP, so none has the site '{site}'.")
    return tuple(sorted(layers))


@torch.no_grad()
def residual_columns(
    model: Transformer,
    contrast: Contrast,
    site: str = "resid_pre",
    wanted: Tensor | None = None,
    source_model: Transformer | None = None,
) -> Iterator[Column]:
    """Every wanted column, [pair, position], as soon as it is known; positions come in ascending order for each pair.

    >>> for column in residual_columns(model, contrast):
    ...     show(column.position, column.logits)
    """
    layers = site_layers(model, site)
    wanted = torch.ones_like(contrast.base, dtype=torch.bool) if wanted is None else wanted
    for chunk in run_chunks(model, contrast, source_model, ("middle",) if NEEDS_MIDDLE[site] else ()):
        arrivals = [_arrive(model, chunk, site, layer) for layer in layers]
        for position in range(wanted.shape[1]):
            here = wanted[chunk.pairs, position].nonzero()[:, 0]
            if len(here):
                yield _change_column(model, chunk, arrivals, position, here, site)


def _arrive(model: Transformer, chunk: Chunk, site: str, layer: int) -> Arrivals:
    """The streams that a change at this site makes where this layer, or the next one, begins."""
    base, source = chunk.base, chunk.source
    if site == "resid_pre":
        return _mark_changes(chunk, layer, source.stream[layer], base.stream[layer])
    last = layer == model.config.n_layers - 1
    columns = slice(base.at, base.at + 1) if last else slice(None)
    old, new = (run.end[:, None] if last else run.stream[layer + 1] for run in (base, source))
    if site != "resid_post":
        assert base.middle is not None
        assert source.middle is not None
        base_middle, middle = base.middle[layer][:, columns], source.middle[layer][:, columns]
        if site == "mlp_out":
            new = base_middle + (new - middle)
        elif site == "resid_mid":
            new = chunk.base.parts.layers[layer].add_mlp(middle.clone())
        else:
            entering = base.stream[layer][:, columns]
            new = chunk.base.parts.layers[layer].add_mlp(entering + (middle - source.stream[layer][:, columns]))
    return _mark_changes(chunk, layer + 1, new, old)


def _mark_changes(chunk: Chunk, start: int, new: Tensor, old: Tensor) -> Arrivals:
    changed = (new != old).any(-1)  # [pair, position]
    if changed.shape[1] == chunk.base.n_positions:
        changed &= torch.arange(changed.shape[1], device=changed.device) >= chunk.first[:, None]
    return Arrivals(start, new, changed)


def _change_column(
    model: Transformer, chunk: Chunk, arrivals: list[Arrivals], position: int, here: Tensor, site: str
) -> Column:
    """The logits of the pairs ``here``: the base run's, except where a change arrives."""
    base, source = chunk.base, chunk.source
    logits = base.logits.repeat(len(arrivals), 1, 1)  # [layer, pair, output]
    needed = torch.zeros(len(arrivals), len(base.logits), dtype=torch.bool)  # [layer, pair]
    for row, arrival in enumerate(arrivals):
        column = _column_of(arrival, position, base.at, model)
        if column is not None:
            needed[row, here] = arrival.changed[here, column]
    if site == "resid_pre":  # what changes the only token that differs gives the source run
        whole = needed[0] & chunk.single
        logits[0, whole] = source.logits[whole]
        needed[0] &= ~whole
    _fill_logits(model, chunk, arrivals, position, needed, logits)
    return Column(position, chunk.pairs[here], logits[:, here], base.logits[here], source.logits[here])


def _column_of(arrival: Arrivals, position: int, at: int, model: Transformer) -> int | None:
    """Where a position stands among the arriving streams; None if it cannot matter."""
    if arrival.start == model.config.n_layers:
        return 0 if position == at else None
    return position if position < arrival.values.shape[1] else None


def _fill_logits(
    model: Transformer, chunk: Chunk, arrivals: list[Arrivals], position: int, needed: Tensor, logits: Tensor
) -> None:
    """Compute what is needed, [layer, pair], together for the pairs whose changes begin in the same layer."""
    begin = torch.where(needed.any(0), needed.int().argmax(0), len(arrivals))  # [pair]
    for lowest, group in equal_groups(begin):
        if lowest == len(arrivals):
            continue
        rows = torch.arange(len(begin))[group]
        used = [row for row in range(lowest, len(arrivals)) if bool(needed[row, rows].any())]
        n_tokens = len(used) * (chunk.base.n_positions - (position if model.config.causal else 0))
        for part in rows.split(max(1, TOKENS_AT_ONCE // n_tokens)):
            taken = as_slice(part)
            starts = {arrivals[row].start: _start(model, chunk, arrivals[row], taken, position) for row in used}
            first = position if model.config.causal else 0
            found = run_changed(chunk.base.take(taken), first, starts)  # [pair, row, output]
            for index, row in enumerate(used):
                logits[row, taken] = torch.where(needed[row, taken, None], found[:, index], logits[row, taken])


def _start(model: Transformer, chunk: Chunk, arrival: Arrivals, rows: slice | Tensor, position: int) -> Tensor:
    """The changed streams [pair, 1, position, d_model] from the first that is changed on, or that one alone."""
    if arrival.start == model.config.n_layers:
        return arrival.values[rows][:, None]
    if model.config.causal:
        return arrival.values[rows, position : position + 1][:, None]
    stream = chunk.base.stream[arrival.start][rows].clone()
    stream[:, position] = arrival.values[rows][:, position]
    return stream[:, None]
