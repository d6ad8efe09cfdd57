"""Result ``attention``: the three attention patterns of the circuit at every checkpoint, and the mean maps of the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from bindscope.studies.framework.measuring import measure_every_step, untrained_model
from bindscope.studies.framework.results import Context, Result, every_step

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

N_SEQUENCES = 150  # of each of the nine splits
N_MAPPED = 2  # times as many of each form, for the mean maps


def compute_attention(context: Context) -> xr.Dataset:
    """Over (step, split, look) ``fraction`` and ``mass``, and over (step, look) those of all splits with intervals,
    ``overall_fraction`` and ``overall_mass``; ``shuffled_fraction`` and ``shuffled_mass`` hold the numbers' columns
    of another sequence against layer 2; ``untrained_…`` are those of a fresh model. ``mean_pattern`` over (form, layer,
    query, key) is the last checkpoint's.
    """
    from bindscope.measures.arithmetic.attention import describe_looks, map_forms

    task: Any = context.run.config.task
    rng = context.rng
    splits = task.sample_evaluation(rng, context.n)
    other = {name: rng.permutation(len(batch)) for name, batch in splits.items()}

    def measure(model: Transformer) -> xr.Dataset:
        return describe_looks(model, task, splits, other)

    dataset = measure_every_step(context, measure)
    for name, variable in measure(untrained_model(context)).data_vars.items():
        dataset[f"untrained_{name}"] = variable
    dataset = dataset.merge(map_forms(context.run.checkpoint("last"), task, rng, N_MAPPED * context.n))
    dataset.attrs = {"n": context.n, "seed": context.seed}
    return dataset


RESULTS = (
    Result("attention", "where the layers attend", compute_attention, n=N_SEQUENCES, steps=every_step, grows=True,
           passes=18),
)  # fmt: skip
