"""Result ``one_step``: one gradient step in the paper's simplified model, at the run's modulus and number of variables."""

from __future__ import annotations

from typing import Any

import xarray as xr

from bindscope.measures.arithmetic.one_step import N_SUMS, step_dataset
from bindscope.studies.framework.measuring import PACKED
from bindscope.studies.framework.results import Context, Result


def compute_one_step(context: Context) -> xr.Dataset:
    """``step_dataset`` for the task of a run."""
    task: Any = context.run.config.task
    dataset = step_dataset(task, n=context.n, seed=context.seed, on_progress=context.on_progress)
    for name in dataset.data_vars:
        if dataset[name].ndim > 1:
            dataset[name].encoding = {**PACKED, "dtype": "float32"}
    return dataset


RESULTS = (Result("one_step", "one gradient step in the simplified model", compute_one_step, revision=2, n=N_SUMS),)
