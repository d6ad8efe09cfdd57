"""Results: sweeps. All are datasets of experiments, at the paper's size where they were trained there, else smaller."""

from __future__ import annotations

from functools import partial

import xarray as xr

from bindscope.measures.stats.thresholds import FEWEST_VALUES
from bindscope.studies.framework.experiments import find_experiment, find_experiment_dataset, load_experiment_dataset
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Context, NotTestable, Result


def compute_sweep(name: str, context: Context) -> xr.Dataset:
    """The dataset of the sweep ``name``: of this run's own preset if there is one, else of another size.

    A sweep of too few values to find a threshold in is passed over while there is a fuller one.
    """
    own = context.run.config
    if getattr(own.task, "operator", "+") != "+":
        raise NotTestable(f"the experiment '{name}' is about addition, and this run has another operator")
    found = []
    for size in (name, f"{name}-small"):
        path = find_experiment_dataset(size, context.runs_directory)
        if path is not None:
            dataset = load_experiment_dataset(path)
            fits = find_preset(find_experiment(size).preset).config.model == own.model
            found.append((dataset.sizes["variant"] >= FEWEST_VALUES, fits, dataset))
    if not found:
        raise NotTestable(
            f"one run cannot show this; train several with 'bindscope experiment {name}' and verify again"
        )
    return max(found, key=lambda each: each[:2])[2]


RESULTS: tuple[Result, ...] = (
    Result(
        "pair-fraction",
        "sums of held-out pairs by the fraction of pairs trained on",
        partial(compute_sweep, "pair-fraction"),
        kept=False,
        experiments=("pair-fraction", "pair-fraction-small"),
    ),
    Result(
        "two-variable-frequency",
        "sums of two variables by how often training shows them",
        partial(compute_sweep, "two-variable-frequency"),
        kept=False,
        experiments=("two-variable-frequency", "two-variable-frequency-small"),
    ),
    Result(
        "two-variable-rows",
        "sums of two variables by how many of them training ever shows",
        partial(compute_sweep, "two-variable-rows"),
        kept=False,
        experiments=("two-variable-rows", "two-variable-rows-small"),
    ),
)
