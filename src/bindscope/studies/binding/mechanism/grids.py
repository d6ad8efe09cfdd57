"""Patch grids through training: means over the same pairs, at every kept checkpoint, in both directions.

    >>> grids = library.fill("grids").dataset
    >>> grids.chain_success.sel(step=3700, direction="noising", layer=2, place="rhs 2")

``chain_…`` are over (step, direction, layer, position), ``head_…`` over (step, direction, layer, head). ``already`` is the
share of pairs that show the source's answer before anything is changed: what success has to be compared with. ``n``
counts the pairs that have a place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.studies.binding.mechanism.measure import EXCLUDED, sample_pairs, track_steps
from bindscope.studies.framework.measuring import PACKED, round_bits
from bindscope.studies.framework.results import Context, Result, with_progress
from bindscope.tasks.binding import structural_places

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.binding import CounterfactualPairs

DIRECTIONS = ("noising", "denoising")
N_RESAMPLES = 300


def compute_grids(context: Context) -> xr.Dataset:
    """Interchange of the residual stream at the positions of the chain and of every head, at each checkpoint and in both directions."""
    pairs = sample_pairs(context.run, context.rng, context.n)
    steps = track_steps(context.run)
    parts = []
    for step in with_progress(steps, context.on_progress):
        parts.append(_measure_checkpoint(context.run.checkpoint(step), pairs, context.seed))
    dataset = xr.concat(parts, xr.IndexVariable("step", steps), combine_attrs="drop")
    for name in dataset.data_vars:
        dataset[name] = (dataset[name].dims, round_bits(dataset[name].values), dataset[name].attrs)
        dataset[name].encoding = {**PACKED, "shuffle": True}
    dataset["n"] = ("place", [int((column >= 0).sum()) for column in structural_places(pairs).values()])
    dataset.attrs = {"n": len(pairs), "excluded": EXCLUDED, "interval": "95 %, bootstrap over pairs"}
    return dataset


def _measure_checkpoint(model: Transformer, pairs: CounterfactualPairs, seed: int) -> xr.Dataset:
    """Both grids in both directions; the same pairs are drawn again in every cell, grid and checkpoint."""
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.interventions.grids import head_grid, place_grid
    from bindscope.interventions.outcome import summarise_outcomes
    from bindscope.measures.binding.mechanism import accuracy_on

    found = []
    for direction in DIRECTIONS:
        contrast = contrast_pairs(pairs, direction)  # type: ignore[arg-type]
        grids = {"chain": place_grid(model, contrast, structural_places(pairs)), "head": head_grid(model, contrast)}
        summaries = []
        for grid, outcomes in grids.items():
            summary = summarise_outcomes(outcomes, np.random.default_rng(seed), n_resamples=N_RESAMPLES)
            summary = summary.drop_vars("n")
            summaries.append(summary.rename({name: f"{grid}_{name}" for name in summary.data_vars}))
        joined = xr.merge(summaries, combine_attrs="drop")
        joined["already"] = ((), _answers_before(model, pairs, direction), {"units": "share"})
        joined["accuracy"] = ((), accuracy_on(model, pairs), {"units": "share"})
        found.append(joined)
    return xr.concat(found, xr.IndexVariable("direction", list(DIRECTIONS)), combine_attrs="drop")


def _answers_before(model: Transformer, pairs: CounterfactualPairs, direction: str) -> float:
    """The share of pairs whose unchanged run already has the other program's answer on top."""
    from bindscope.measures.evaluation import read_answers

    sides: tuple[Any, Any] = (pairs.base, pairs.counterfactual)
    run, other = sides if direction == "noising" else sides[::-1]
    return float((read_answers(model, run).argmax(1) == other.targets[:, 0]).mean())


RESULTS = (Result("grids", "patch grids through training", compute_grids, n=64, steps=track_steps, passes=100),)
