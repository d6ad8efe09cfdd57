"""Results about programs and combinations unlike those of training, and about other runs of the same preset."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.measures.stats.fractions import fraction_variables
from bindscope.runs.config import override
from bindscope.studies.framework.experiments import find_experiment, find_experiment_dataset, load_experiment_dataset
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Context, NotTestable, Result, last_step

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

LENGTHS = (2, 4, 8, 12, 16, 20, 25)
DEPTHS = (1, 2, 3, 4, 5, 6, 8, 10, 13)


def held_out_step(run: Run) -> Sequence[int]:
    """The last checkpoint, of a run that was trained with combinations left out; of others no model is read."""
    task: Any = run.config.task
    return run.steps[-1:] if task.held_out else ()


def compute_lengths(context: Context) -> xr.Dataset:
    """Accuracy and the line-1 heuristic over program length and chain depth, at the last checkpoint."""
    from bindscope.measures.binding.generalisation import length_depth_grid

    task: Any = context.run.config.task
    most = 30 if task.reassign else task.n_variables
    lengths = sorted({length for length in (*LENGTHS, task.lines) if length <= most})
    depths = sorted({*DEPTHS, task.max_depth})
    model = context.run.checkpoint("last")
    dataset = length_depth_grid(model, task, lengths, depths, context.n, context.rng, context.on_progress)
    dataset.attrs |= {"trained_lines": task.lines, "trained_min_lines": task.min_lines or task.lines}
    return dataset


def compute_held_out(context: Context) -> xr.Dataset:
    """Accuracy on combinations that training showed and never did: of this run, or of the experiment that tests it."""
    from bindscope.measures.binding.generalisation import compare_held_out

    task: Any = context.run.config.task
    if not task.held_out:
        return split_held_out(find_experiment_result(context, "held-out"))
    return compare_held_out(context.run.checkpoint("last"), task, context.n or 2000, context.rng)


def compute_weighting(context: Context) -> xr.Dataset:
    """Runs with chains extended by the cube of their depth and uniformly."""
    return find_experiment_result(context, "weighting")


def find_experiment_result(context: Context, name: str) -> xr.Dataset:
    """The dataset of an experiment on this run's own task and model, made here or shipped."""
    path = find_experiment_dataset(name, context.runs_directory)
    planned, own = find_experiment(name), context.run.config
    preset, changes = planned.preset, dict(planned.changes)
    if path is not None:
        dataset = load_experiment_dataset(path)
        preset, changes = str(dataset.attrs["preset"]), json.loads(str(dataset.attrs["common_changes"]))
    trained = override(find_preset(preset).config, changes)
    if (trained.task, trained.model) != (own.task, own.model):
        raise NotTestable(f"the experiment '{name}' trains {preset}, and this run has another task or model")
    if path is None:
        raise NotTestable(
            f"one run cannot show this; train several with 'bindscope experiment {name}' and verify again"
        )
    return dataset


def split_held_out(dataset: xr.Dataset) -> xr.Dataset:
    """The last evaluation of each seed, as splits over (split,): what all seeds together got right."""
    runs = dataset.isel(variant=0)
    counts, hits = [], []
    for fraction_name, count_name in (("accuracy", "n"), ("held_out_accuracy", "n_held_out")):
        if fraction_name not in runs:
            raise NotTestable("the experiment 'held-out' recorded no held-out programs; run it again")
        curves = runs[fraction_name].transpose("seed", "step").values
        last = np.array([curve[np.isfinite(curve)][-1] for curve in curves])  # [seed]
        n = runs[count_name].values  # [seed]
        counts.append(float(n.sum()))
        hits.append(float(np.round(last * n).sum()))
    splits = xr.Dataset(fraction_variables("accuracy", ["split"], hits, counts), {"split": ["test", "held_out"]})
    splits["n"] = ("split", np.array(counts).astype(int))
    fraction = json.loads(str(dataset.attrs["changes"]))[str(runs.variant.values)].get("task.held_out", np.nan)
    splits.attrs = {"held_out": fraction, "seeds": runs.sizes["seed"], "source": dataset.attrs["source"]}
    return splits


RESULTS = (
    Result("lengths", "programs of other lengths and depths", compute_lengths, n=100, steps=last_step),
    Result("held-out", "held-out combinations", compute_held_out, n=2000, steps=held_out_step, kept=False),
    Result("weighting", "uniform weighting", compute_weighting, kept=False),
)
