"""Results about the algorithm: the patches that tell it at the last checkpoint, and with fewer pairs through training."""

from __future__ import annotations

import xarray as xr

from bindscope.studies.binding.mechanism.measure import EXCLUDED, track_steps
from bindscope.studies.framework.measuring import PACKED
from bindscope.studies.framework.results import Context, Result, last_step, with_progress


def compute_algorithm(context: Context) -> xr.Dataset:
    """Patches of values and pointers, alone and jointly, at the last checkpoint."""
    from bindscope.measures.binding.algorithm.patches import draw_chain_pairs, measure_patches

    drawn = draw_chain_pairs(context.run.config.task, context.rng, context.n)  # type: ignore[arg-type]
    dataset = measure_patches(context.run.checkpoint("last"), drawn, context.on_progress)
    return dataset.assign_attrs(step=context.run.steps[-1], excluded=EXCLUDED)


def compute_algorithm_steps(context: Context) -> xr.Dataset:
    """The same with fewer pairs at every tracked checkpoint, over (step, …); depths that are not learned stay missing."""
    from bindscope.measures.binding.algorithm.patches import draw_chain_pairs, measure_patches

    drawn = draw_chain_pairs(context.run.config.task, context.rng, context.n)  # type: ignore[arg-type]
    steps = track_steps(context.run)
    parts = [measure_patches(context.run.checkpoint(step), drawn) for step in with_progress(steps, context.on_progress)]
    dataset = xr.concat(parts, xr.IndexVariable("step", steps), combine_attrs="drop_conflicts")
    for name in dataset.data_vars:
        dataset[name].encoding = {**PACKED, "shuffle": True}
    return dataset.assign_attrs(excluded=EXCLUDED)


RESULTS = (
    Result("algorithm", "the algorithm", compute_algorithm, n=48, steps=last_step, passes=75),
    Result(
        "algorithm_steps",
        "the algorithm through training",
        compute_algorithm_steps,
        n=20,
        steps=track_steps,
        passes=75,
    ),
)
