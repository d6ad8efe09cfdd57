"""A patch grid pair by pair, and its means, of one checkpoint and any number of pairs.

    >>> grid = measure_pair_grid(model, pairs, Patch("residual"), "logit_difference", seed=0)
    >>> grid.pair_success.dims, grid.success.dims
    (('pair', 'layer', 'position'), ('layer', 'position'))

Pairs are patched some at a time: beside these, memory holds two numbers for each pair and cell, and no other checkpoint.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from bindscope.interventions.outcome import summarise_outcomes
from bindscope.measures.binding.patching import Patch, patch_model
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding.pairs import CounterfactualPairs

PAIRS_AT_ONCE = 128


def measure_pair_grid(
    model: Transformer, pairs: CounterfactualPairs, patch: Patch, metric: str, seed: int
) -> xr.Dataset:
    """``pair_success`` and ``pair_METRIC`` over (pair, cell …), their means over pairs with bootstrap intervals, and ``n``."""
    outcomes: dict[str, np.ndarray] = {}
    for start in range(0, len(pairs), PAIRS_AT_ONCE):
        rows = slice(start, start + PAIRS_AT_ONCE)
        part = patch_model(model, pairs.take(rows), patch)[["success", metric]].transpose("pair", ...)
        for name, values in part.items():
            whole = outcomes.setdefault(str(name), np.empty((len(pairs), *values.shape[1:]), np.float32))
            whole[rows] = values.values
    labels = part.drop_dims("pair").coords
    whole_grid = xr.Dataset(
        {name: (part[name].dims, values, part[name].attrs) for name, values in outcomes.items()}, labels
    )
    summary = summarise_outcomes(whole_grid, np.random.default_rng([seed, 1]))  # as ``bindscope patch`` takes means
    dataset = summary.merge(whole_grid.rename({name: f"pair_{name}" for name in outcomes}), combine_attrs="drop")
    return dataset.assign_attrs(interval="95 %, bootstrap over pairs", **part.attrs)
