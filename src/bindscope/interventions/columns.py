"""Patching at one position of the residual stream, every layer at once: the columns of a residual grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bindscope.errors import BindscopeError, name_nearest
from bindscope.interventions.chunks import Chunk, as_slice, near_groups, run_chunks, tokens_at_once
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.engine import KeptRun, run_changed
from bindscope.interventions.tolerant import Tolerance, check_tolerance, logit_slopes, run_within
from bindscope.interventions.workers import map_in_order
from bindscope.model.transformer import Transformer

NEEDS_MIDDLE = {"resid_pre": False, "resid_post": False, "resid_mid": True, "attn_out": True, "mlp_out": True}


@dataclass(frozen=True, eq=False)
class Columns:
    """The logits of some pairs, each changed at a position of its own, in each of the site's layers in turn."""

    pairs: Tensor  # [column]: which of the contrast's; one pair may have several columns
    positions: Tensor  # [column]
    logits: Tensor  # [layer, column, output]
    base_logits: Tensor  # [column, output]
    source_logits: Tensor  # [column, output]


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
            f"a residual grid has no site '{site}'; it has {', '.join(NEEDS_MIDDLE)}.{name_nearest(site, NEEDS_MIDDLE)}"
        )
    if site == "resid_mid" and model.config.parallel:
        raise BindscopeError("attention and MLP of this model work in parallel, so it has no site 'resid_mid'.")
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
    *,
    tolerance: float = 0.0,
    early: Tensor | None = None,
    n_workers: int = 1,
) -> Iterator[Columns]:
    """Every wanted column, [pair, position], as soon as it is known; of each pair, ascending positions.

    They are exact, or with a ``tolerance`` leave out what the answer would feel less of, in logits.

    >>> for columns in residual_columns(model, contrast):
    ...     show(columns.positions, columns.logits)

    Of the columns that have to be computed those that are ``early`` [pair, position] come before the others. Several workers
    (``map_in_order``) leave the order as it is.
    """
    check_tolerance(tolerance)
    layers = site_layers(model, site)
    also = (*(("middle",) if NEEDS_MIDDLE[site] else ()), *(("z",) if tolerance else ()))
    wanted = torch.ones_like(contrast.base, dtype=torch.bool) if wanted is None else wanted
    early = torch.zeros_like(wanted) if early is None else early
    for chunk in run_chunks(model, contrast, source_model, also):
        arrivals = [_arrive(model, chunk, site, layer) for layer in layers]
        within = None
        if tolerance:
            pairs = contrast.take(chunk.pairs)
            within = Tolerance(tolerance, logit_slopes(model, pairs.base, pairs.source, pairs.at))
        marked = wanted[chunk.pairs].T, early[chunk.pairs].T
        yield from Cells(chunk, arrivals, *marked, site == "resid_pre", within).run(n_workers)
        del chunk, arrivals, within  # so that the next one finds the memory free


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
        entering = base.stream[layer][:, columns]
        if site == "mlp_out":
            new = base_middle + (new - middle)
        elif site == "resid_mid":
            new = chunk.base.parts.layers[layer].add_mlp(middle.clone(), entering)
        else:
            attended = middle - source.stream[layer][:, columns]
            new = chunk.base.parts.layers[layer].add_mlp(entering + attended, entering)
    return _mark_changes(chunk, layer + 1, new, old)


def _mark_changes(chunk: Chunk, start: int, new: Tensor, old: Tensor) -> Arrivals:
    changed = (new != old).any(-1).cpu()  # [pair, position]
    if changed.shape[1] == chunk.base.n_positions:
        changed &= torch.arange(changed.shape[1]) >= chunk.first[:, None]
    return Arrivals(start, new, changed)


class Cells:
    """The wanted cells of a chunk, [layer, column]: the base run's logits, except where a change arrives."""

    def __init__(
        self,
        chunk: Chunk,
        arrivals: list[Arrivals],
        wanted: Tensor,
        early: Tensor,
        from_tokens: bool,
        within: Tolerance | None,
    ) -> None:
        base, source = chunk.base, chunk.source
        self.chunk, self.arrivals, self.within = chunk, arrivals, within
        self.positions, self.rows = wanted.nonzero(as_tuple=True)  # [column]: ascending, and which pair of the chunk
        self.early = early[self.positions, self.rows]  # [column]
        self.logits = base.logits[self.rows].repeat(len(arrivals), 1, 1)  # [layer, column, output]
        self.needed = torch.stack([_arrives(arrival, base, self.rows, self.positions) for arrival in arrivals])
        if from_tokens:  # what changes the only token that differs gives the source run
            whole = self.needed[0] & chunk.single[self.rows]
            self.logits[0, whole] = source.logits[self.rows[whole]]
            self.needed[0] &= ~whole

    def run(self, n_workers: int) -> Iterator[Columns]:
        """All columns; first those that nothing changes."""
        known = (~self.needed.any(0)).nonzero()[:, 0]
        if len(known):
            yield self.read(known)
        batches = list(self.batches())
        for found, (used, chosen) in zip(map_in_order(self.sweep, batches, n_workers), batches):
            for index, row in enumerate(used):
                changing = self.needed[row, chosen, None].to(found.device)
                self.logits[row, chosen] = torch.where(changing, found[index], self.logits[row, chosen])
            yield self.read(chosen)

    def batches(self) -> Iterator[tuple[list[int], Tensor]]:
        """Which arrivals and which columns to sweep together."""
        begin = torch.where(self.needed.any(0), self.needed.int().argmax(0), len(self.arrivals))  # [column]
        for early in (True, False):
            among = (self.early == early) & (begin < len(self.arrivals))
            for lowest in begin[among].unique().tolist():
                group = (among & (begin == lowest)).nonzero()[:, 0]
                used = [row for row in range(lowest, len(self.arrivals)) if bool(self.needed[row, group].any())]
                for chosen in _batches(self.chunk.base, self.positions, group, len(used)):
                    yield used, chosen

    def sweep(self, batch: tuple[list[int], Tensor]) -> Tensor:
        used, chosen = batch
        arrivals = [self.arrivals[row] for row in used]
        return _run_columns(self.chunk.base, arrivals, self.rows[chosen], self.positions[chosen], self.within)

    def read(self, chosen: Tensor) -> Columns:
        base, source, rows = self.chunk.base, self.chunk.source, self.rows[chosen]
        logits = self.logits[:, chosen]
        return Columns(self.chunk.pairs[rows], self.positions[chosen], logits, base.logits[rows], source.logits[rows])


def _arrives(arrival: Arrivals, base: KeptRun, rows: Tensor, positions: Tensor) -> Tensor:
    """Whether a change at these positions arrives, [column]."""
    n_arriving = arrival.changed.shape[1]
    if arrival.start == base.parts.config.n_layers:
        return (positions == base.at) & arrival.changed[rows, 0]
    return (positions < n_arriving) & arrival.changed[rows, positions.clamp_max(n_arriving - 1)]


def _batches(base: KeptRun, positions: Tensor, group: Tensor, n_rows: int) -> Iterator[Tensor]:
    """Columns to sweep together: of near positions, and few enough to bound memory."""
    causal = base.parts.config.causal
    for first, members in near_groups(positions[group], base.parts, n_rows) if causal else [(0, slice(None))]:
        n_tokens = n_rows * (base.n_positions - first)
        yield from group[members].split(max(1, tokens_at_once(base.parts.model) // n_tokens))


def _run_columns(
    base: KeptRun, arrivals: list[Arrivals], rows: Tensor, positions: Tensor, within: Tolerance | None
) -> Tensor:
    """Logits [arrival, column, output]."""
    first = int(positions.min()) if base.parts.config.causal else 0
    stop = int(positions.max()) + 1  # behind that all enters as in the base run
    taken, columns = as_slice(rows), torch.arange(len(rows))
    starts = {}
    for arrival in arrivals:
        if arrival.start == base.parts.config.n_layers:
            values = arrival.values[taken]
        elif stop == first + 1:
            values = arrival.values[taken, first:stop]
        else:
            values = base.stream[arrival.start][taken, first:stop].clone()
            values[columns, positions - first] = arrival.values[rows, positions]
        starts[arrival.start] = values[None]
    if within is None:
        return run_changed(base, first, starts, taken)
    return run_within(within, base, first, starts, taken)
