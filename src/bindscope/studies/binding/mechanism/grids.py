"""Patch grids through training: means over the same pairs, at every saved checkpoint, in both directions.

    >>> grids = library.fill("grids").dataset
    >>> grids.chain_success.sel(step=3700, direction="noising", layer=2, position="rhs 2")

``chain_…`` are over (step, direction, layer, position), ``head_…`` over (step, direction, layer, head). ``already`` is the
fraction of pairs that show the source's answer before anything is changed: what success has to be compared with. ``n``
counts the pairs that have a position.
"""

from __future__ import annotations

import xarray as xr

from bindscope.studies.binding.mechanism.measure import EXCLUDED, sample_pairs, track_steps
from bindscope.studies.framework.measuring import PACKED, round_bits
from bindscope.studies.framework.results import Context, Result, with_progress
from bindscope.tasks.binding import named_positions


def compute_grids(context: Context) -> xr.Dataset:
    """Patching of the residual stream at the positions of the chain and of every head, at each checkpoint and in both directions."""
    from bindscope.measures.binding.mechanism import measure_grids

    pairs = sample_pairs(context.run, context.rng, context.n)
    steps = track_steps(context.run)
    parts = [
        measure_grids(context.run.checkpoint(step), pairs, context.seed)
        for step in with_progress(steps, context.on_progress)
    ]
    dataset = xr.concat(parts, xr.IndexVariable("step", steps), combine_attrs="drop")
    for name in dataset.data_vars:
        dataset[name] = (dataset[name].dims, round_bits(dataset[name].values), dataset[name].attrs)
        dataset[name].encoding = {**PACKED, "shuffle": True}
    dataset["n"] = ("position", [int((column >= 0).sum()) for column in named_positions(pairs).values()])
    dataset.attrs = {"n": len(pairs), "excluded": EXCLUDED, "interval": "95 %, bootstrap over pairs"}
    return dataset


RESULTS = (Result("grids", "patch grids through training", compute_grids, n=64, steps=track_steps, passes=100),)
