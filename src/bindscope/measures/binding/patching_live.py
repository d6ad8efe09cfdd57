"""Activation patching on one pair of programs, for someone who waits: parts of a grid as they are made, whole distributions.

    >>> contrast = contrast_pairs(pair_programs(program, counterfactual))
    >>> for part in stream_grid(model, contrast, "residual"):
    ...     show(part.at, part.values["success"])

A grid's cells stand in one row, the last axis running fastest, so that a part is an offset and the values from there on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr

from bindscope.interventions.columns import residual_columns, site_layers
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.metrics import METRICS, UNITS
from bindscope.interventions.outcome import measure_outcomes
from bindscope.interventions.patching import patch_logits
from bindscope.interventions.replacement import layers_with_mlp, patch_heads, patch_mlps
from bindscope.measures.binding.patching import NamedPositions, locate_sites
from bindscope.model.run import to_host
from bindscope.model.transformer import Transformer

Grid = Literal["residual", "heads", "mlps"]
CONDITIONS = ("base", "source", "patched")


@dataclass(frozen=True, eq=False)
class GridPart:
    """The values of neighbouring cells, the first of them at position ``at``."""

    at: int
    values: dict[str, np.ndarray]  # metric → [cell]


def empty_grid(model: Transformer, contrast: Contrast, grid: Grid, n_positions: int | None = None) -> xr.Dataset:
    """The dataset that the parts fill, all cells missing: residual (position, layer), heads (layer, head), mlps (layer)."""
    config = model.config
    all_coords: dict[str, dict[str, Sequence[int]]] = {
        "residual": {"position": range(n_positions or contrast.base.shape[1]), "layer": range(config.n_layers)},
        "heads": {"layer": range(config.n_layers), "head": range(config.n_heads)},
        "mlps": {"layer": layers_with_mlp(model) if grid == "mlps" else ()},
    }
    coords = all_coords[grid]
    shape = [len(labels) for labels in coords.values()]
    missing = {name: (tuple(coords), np.full(shape, np.nan, np.float32), {"units": UNITS[name]}) for name in METRICS}
    return xr.Dataset(missing, {name: list(labels) for name, labels in coords.items()})


def stream_grid(
    model: Transformer,
    contrast: Contrast,
    grid: Grid,
    source_model: Transformer | None = None,
    first: Iterable[int] = (),
    columns: np.ndarray | None = None,
    n_workers: int = 1,
) -> Iterator[GridPart]:
    """Every cell of the grid once, in parts; together they equal ``residual_grid``, ``head_grid`` or ``mlp_grid``.

    A residual grid has the given ``columns``, in their order, all when left out. Where nothing changes comes first, then those
    among ``first``, which a reader looks for; ``n_workers`` threads compute them.
    """
    if grid == "residual":
        columns = np.arange(contrast.base.shape[1]) if columns is None else columns
        yield from _stream_residual(model, contrast, source_model, first, columns, n_workers)
        return
    patch = patch_heads if grid == "heads" else patch_mlps
    for found in patch(model, contrast, None, source_model):
        measured = measure_outcomes(found.logits, found.base_logits, found.source_logits, contrast)
        yield GridPart(0, {name: values.ravel() for name, values in measured.items()})


def _stream_residual(
    model: Transformer,
    contrast: Contrast,
    source_model: Transformer | None,
    first: Iterable[int],
    columns: np.ndarray,
    n_workers: int,
) -> Iterator[GridPart]:
    n_layers = len(site_layers(model, "resid_pre"))
    wanted, early = (torch.zeros_like(contrast.base, dtype=torch.bool) for _ in range(2))
    wanted[:, torch.from_numpy(columns)] = True
    early[:, list(first)] = True
    for found in residual_columns(
        model, contrast, wanted=wanted, source_model=source_model, early=early, n_workers=n_workers
    ):
        pairs = contrast.take(found.pairs)
        measured = measure_outcomes(found.logits, found.base_logits, found.source_logits, pairs)  # [layer, column]
        positions = np.searchsorted(columns, found.positions.numpy())
        for run in np.split(np.arange(len(positions)), np.flatnonzero(np.diff(positions) != 1) + 1):
            values = {name: numbers[:, run].T.ravel() for name, numbers in measured.items()}
            yield GridPart(int(positions[run[0]]) * n_layers, values)


def patch_distributions(
    load: Callable[[int], Transformer],
    steps: Sequence[int],
    contrast: Contrast,
    sites: Sequence[str],
    named: NamedPositions,
    source_step: int | None = None,
) -> xr.Dataset:
    """One pair with all ``sites`` taken from the source together, at each step.

    ``probability`` (step, condition, output) of the base run, the source run and the patched run; every metric (step).
    """
    texts, positions = locate_sites(sites, named)
    source_model = None if source_step is None else load(source_step)
    fractions, outcomes = [], []
    for step in steps:
        logits = patch_logits(load(step), contrast, texts, positions=positions, source_model=source_model)
        together = to_host(torch.stack([logits.base, logits.source, logits.patched])[:, 0])  # [condition, output]
        fractions.append(together.double().softmax(-1).numpy())
        measured = measure_outcomes(logits.patched, logits.base, logits.source, contrast)
        outcomes.append({name: values[0] if logits.touched[0] else np.nan for name, values in measured.items()})
    probability = (("step", "condition", "output"), np.stack(fractions), {"units": "fraction"})
    metrics = {name: ("step", np.array([row[name] for row in outcomes]), {"units": UNITS[name]}) for name in METRICS}
    return xr.Dataset({"probability": probability, **metrics}, {"step": list(steps), "condition": list(CONDITIONS)})
