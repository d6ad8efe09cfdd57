"""What the kernel says of the tasks, beside what trained transformers needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bindscope.studies.framework.experiments import find_experiment_dataset, load_experiment_dataset
from bindscope.studies.framework.results import Context, Result, with_progress
from bindscope.studies.symbols.efficiency.curves import FEWER
from bindscope.studies.symbols.kernel.define import TASKS, LearnedTask
from bindscope.studies.symbols.kernel.learnability import describe_kernel, kernel_settings
from bindscope.tasks.templates import TemplateTask

BETAS = (1.0, 3.0)
RIDGE_BETA = 3.0
POINTS = {"points": 256}
RIDGE_POINTS = {"points": 64, "inner_points": 8, "randomisations": 8}  # of the Gram matrices, which need no interval
RIDGE_SIZES = (16, 64, 256, 1024)
RIDGE_SEEDS = (0, 1)
EXPERIMENT = "learnability"
SHARED = ("last_loss", "last_accuracy", "split_n", "status")  # of the experiments whose curves are put together


def compute_kernel(context: Context) -> xr.Dataset:
    """Every task: N, λ, yᵀN⁻¹y and the verdict for each β; and ridge regression's error on fresh symbols over n."""
    rows = [_describe(task) for task in with_progress(TASKS, context.on_progress)]
    dataset = xr.concat(rows, "task", join="outer")
    dataset.attrs = {
        "title": "kernel of the tasks of 'learnability'",
        "ridge_beta": RIDGE_BETA,
        "source": "bindscope verify symbols --claim AS13",
    }
    return dataset


def compute_learnability(context: Context) -> xr.Dataset:
    """The experiment's curves, with those of the tasks that other experiments train, over variant and seed."""
    missing = f"no curves over n were trained; train them with 'bindscope experiment {EXPERIMENT}'"
    own = context.read_experiment(EXPERIMENT, missing)
    parts = [own[list(SHARED)]]
    for task in TASKS:
        found = None if task.borrowed is None else find_experiment_dataset(task.borrowed, context.runs_directory)
        if found is not None:
            parts.append(_take_curves(load_experiment_dataset(found), task))
    dataset = xr.concat(parts, "variant", join="outer", data_vars="all", coords="minimal", compat="override")
    dataset["split_n"] = own.split_n
    dataset.attrs = own.attrs
    return dataset


def _describe(task: LearnedTask) -> xr.Dataset:
    from bindscope.theory.kernel_ridge import ridge_generalises

    by_beta = [describe_kernel(task, kernel_settings(task, beta, **POINTS)) for beta in BETAS]
    columns: dict[str, Any] = {name: ("beta", [found[name] for found in by_beta]) for name in by_beta[0]}
    sequences = TemplateTask(name="custom", templates=task.templates, labels=task.labels)
    settings = kernel_settings(task, RIDGE_BETA, **RIDGE_POINTS)
    ridge = ridge_generalises(sequences, RIDGE_SIZES, RIDGE_SEEDS, settings)
    for name, column in (("ridge_error", "test_error"), ("shuffled_error", "shuffled_error")):
        columns[name] = (("n", "seed"), ridge[column].values)
    coordinates = {"beta": list(BETAS), "n": list(RIDGE_SIZES), "seed": list(RIDGE_SEEDS), "task": task.name}
    return xr.Dataset(columns, coords=coordinates)


def _take_curves(dataset: xr.Dataset, task: LearnedTask) -> xr.Dataset:
    """The plain and the modified transformer's curves with fewer heads, labelled with the task."""
    chosen = np.isin(dataset.model.values, ["plain", "both"]) & (dataset.heads.values == FEWER)
    part = dataset[list(SHARED)].isel(variant=np.flatnonzero(chosen))
    names = [f"{task.name}-{name}" for name in part.variant.values]
    return part.assign_coords(variant=names, task=("variant", [task.name] * len(names)))


RESULTS: tuple[Result, ...] = (
    Result(
        "kernel",
        "the kernel of every task, and ridge regression with it",
        compute_kernel,
        needs=(EXPERIMENT,),  # without trained curves to hold it against it is not worth the seconds
        slow=True,
    ),
    Result(
        "learnability",
        "curves over n of tasks that the kernel tells apart",
        compute_learnability,
        kept=False,
        experiments=(EXPERIMENT, *dict.fromkeys(task.borrowed for task in TASKS if task.borrowed is not None)),
    ),
)
