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
    dataset.attrs = {**parts[0].attrs, "direction": patch.direction}
    if source_step is not None:
        dataset.attrs["source_step"] = source_step
    return dataset


def patch_model(
    model: Transformer, pairs: CounterfactualPairs, patch: Patch, *, source_model: Transformer | None = None
) -> xr.Dataset:
    """One checkpoint: every metric over the patch's cells and (pair,)."""
    contrast, named = contrast_pairs(pairs, patch.direction), named_positions(pairs)
    if patch.approximate:
        return _approximate(model, contrast, named, patch, source_model)
    if patch.sites:
        sites, positions = locate_sites(patch.sites, named)
        edit = take_dimensions(patch.neurons) if patch.neurons else None
        return patch_sites(
            model, contrast, sites, positions=positions, edit=edit, source_model=source_model, metric=patch.metric
        )
    if patch.grid == "chain":
        return position_grid(model, contrast, named, source_model=source_model, metric=patch.metric)
    grid = {"residual": residual_grid, "heads": head_grid, "mlps": mlp_grid}[patch.grid]
    return grid(model, contrast, source_model=source_model, metric=patch.metric)  # type: ignore[no-any-return, operator]


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
