"""Activation patching on a run's checkpoints: one grid, or chosen cells together, at one step or over all of them.

    >>> patch = Patch(grid="chain")
    >>> dataset = patch_steps(run.checkpoint, (1000, 3700), pairs, patch)
    >>> dataset.success.dims
    ('step', 'layer', 'position', 'pair')

Every dataset keeps its pairs apart and says in its attributes what was done; ``summarise_outcomes`` takes the means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.interventions.attribution import attribute_heads, attribute_mlps, attribute_positions, attribute_residual
from bindscope.interventions.contrast import Contrast, Direction, contrast_pairs
from bindscope.interventions.grids import head_grid, mlp_grid, position_grid, residual_grid
from bindscope.interventions.own_metric import Function, OwnMetric
from bindscope.interventions.patching import patch_sites, take_dimensions
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding.pairs import CounterfactualPairs
from bindscope.tasks.binding.rendered import columns_of
from bindscope.tasks.binding.structure import named_positions

Grid = Literal["chain", "residual", "heads", "mlps"]
NamedPositions = Mapping[str, np.ndarray]
Progress = Callable[[int, int], None]
_AT_POSITION = re.compile(r"(?P<site>[^@]+)@(?P<position>[a-z]+(?: \d+)?)")


@dataclass(frozen=True)
class Patch:
    """What is changed: one cell after another of a grid or, where ``sites`` are named, those together.

    A site may carry positions, ``L2.resid_pre@14``, or the name of a position, ``L2.H1@rhs 2``, which stands elsewhere in
    each program. ``neurons`` takes only these coordinates of every site.
    """

    grid: Grid = "chain"
    sites: tuple[str, ...] = ()
    neurons: tuple[int, ...] = ()
    direction: Direction = "noising"
    approximate: bool = False  # the gradient's estimate instead of the exact outcome
    metric: OwnMetric | Function | None = None  # of one's own, measured beside the others
    tolerance: float = (
        0.0  # of the two grids of the residual stream, in logits: what the answer feels less of is left out
    )

    @property
    def dims(self) -> tuple[str, ...]:
        """What cells are counted by."""
        if self.sites:
            return ()
        return {
            "chain": ("layer", "position"),
            "residual": ("layer", "position"),
            "heads": ("layer", "head"),
            "mlps": ("layer",),
        }[self.grid]


def patch_steps(
    load: Callable[[int], Transformer],
    steps: Sequence[int],
    pairs: CounterfactualPairs,
    patch: Patch,
    *,
    source_step: int | None = None,
    on_progress: Progress | None = None,
) -> xr.Dataset:
    """The same patch on each checkpoint, over (step, …, pair); activations from ``source_step`` where one is given."""
    source_model = None if source_step is None else load(source_step)
    parts = []
    for done, step in enumerate(steps, start=1):
        parts.append(patch_model(load(step), pairs, patch, source_model=source_model))
        if on_progress is not None:
            on_progress(done, len(steps))
    dataset = xr.concat(parts, dim="step").assign_coords(step=list(steps))
    dataset.attrs = {**parts[0].attrs, **_worst_errors(parts), "direction": patch.direction}
    if source_step is not None:
        dataset.attrs["source_step"] = source_step
    return dataset


def _worst_errors(parts: Sequence[xr.Dataset]) -> dict[str, float]:
    """Over all checkpoints, how far grids with a tolerance are off, and how many cells tell."""
    names = [name for name in map(str, parts[0].attrs) if name.startswith("error_of_")]
    worst = {name: max(part.attrs[name] for part in parts) for name in names}
    return worst | ({"n_checked": sum(part.attrs["n_checked"] for part in parts)} if worst else {})


def patch_model(
    model: Transformer, pairs: CounterfactualPairs, patch: Patch, *, source_model: Transformer | None = None
) -> xr.Dataset:
    """One checkpoint: every metric over the patch's cells and (pair,)."""
    contrast, named = contrast_pairs(pairs, patch.direction), named_positions(pairs)
    if patch.approximate:
        estimate = _approximate(model, contrast, named, patch, source_model)
        return _at_columns(estimate, columns_of(pairs.base)) if patch.grid == "residual" else estimate
    columns = columns_of(pairs.base)
    if patch.sites:
        sites, positions = locate_sites(count_columns(patch.sites, columns), named)
        edit = take_dimensions(patch.neurons) if patch.neurons else None
        return patch_sites(
            model, contrast, sites, positions=positions, edit=edit, source_model=source_model, metric=patch.metric
        )
    if patch.grid == "chain":
        return position_grid(
            model, contrast, named, source_model=source_model, metric=patch.metric, tolerance=patch.tolerance
        )
    if patch.grid == "residual":
        wanted = np.zeros(tuple(contrast.base.shape), dtype=bool)
        wanted[:, columns] = True
        grid = residual_grid(
            model, contrast, wanted=wanted, source_model=source_model, metric=patch.metric, tolerance=patch.tolerance
        )
        return _at_columns(grid, columns)
    grid_of = {"heads": head_grid, "mlps": mlp_grid}[patch.grid]
    return grid_of(model, contrast, source_model=source_model, metric=patch.metric)


def _at_columns(grid: xr.Dataset, columns: np.ndarray) -> xr.Dataset:
    """A grid over a program's own positions, each at its column."""
    return grid.isel(position=columns).assign_coords(position=np.arange(len(columns)))


def _approximate(
    model: Transformer, contrast: Contrast, named: NamedPositions, patch: Patch, source_model: Transformer | None
) -> xr.Dataset:
    if patch.metric is not None:
        raise BindscopeError("a gradient estimates logit_difference and new_logit, not a metric of one's own.")
    if patch.sites or source_model is not None:
        raise BindscopeError("the gradient's estimate covers grids within one checkpoint; leave out one of the two.")
    if patch.grid == "chain":
        return attribute_positions(model, contrast, named)
    attribute = {"residual": attribute_residual, "heads": attribute_heads, "mlps": attribute_mlps}[patch.grid]
    return attribute(model, contrast)  # type: ignore[no-any-return, operator]


def count_columns(texts: Sequence[str], columns: np.ndarray) -> list[str]:
    """Sites whose numbered positions, which count a program's own, are the columns that stand for them.

    >>> count_columns(["L2.resid_pre@0,2", "L1.H0"], columns=np.array([5, 6, 8]))
    ['L2.resid_pre@5,8', 'L1.H0']
    """
    counted = []
    for text in texts:
        site, at, positions = text.partition("@")
        if at and re.fullmatch(r"\d+(?:,\d+)*", positions.strip()):
            numbers = [int(number) for number in positions.split(",")]
            beyond = [number for number in numbers if number >= len(columns)]
            if beyond:
                raise BindscopeError(f"site '{text}': these programs have positions 0 to {len(columns) - 1}.")
            text = f"{site}@{','.join(str(columns[number]) for number in numbers)}"
        counted.append(text)
    return counted


def locate_sites(texts: Sequence[str], named: NamedPositions) -> tuple[list[str], dict[Site | str, np.ndarray]]:
    """Site names with columns [pair, k] for those that name a position: ``L2.H1@rhs 2``.

    >>> locate_sites(["L2.H1@rhs 1", "L2.H1@rhs 2", "L0.mlp_out"], named)
    (['L2.H1', 'L0.mlp_out'], {'L2.H1': array([[2, 6], ...])})
    """
    sites: list[str] = []
    columns: dict[str, list[np.ndarray]] = {}
    for text in texts:
        match = _AT_POSITION.fullmatch(text.strip())
        site = match["site"].strip() if match else text.strip()
        if site not in sites:
            sites.append(site)
        elif not match:
            raise BindscopeError(f"site '{site}' is named twice; keep one.")
        if match:
            if match["position"] not in named:
                hint = suggest_nearest(match["position"], named)
                raise BindscopeError(f"site '{text}': these programs have no position '{match['position']}'.{hint}")
            columns.setdefault(site, []).append(named[match["position"]])
    return sites, {site: np.stack(found, axis=1) for site, found in columns.items()}
