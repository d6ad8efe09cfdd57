"""What the runs of a sweep recorded, side by side in one dataset over (variant, seed)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.families import family_of
from bindscope.measures.phases import find_transition
from bindscope.studies.framework.trajectory import trajectory_dataset

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

LAST = {"split_loss": "last_loss", "half_accuracy": "last_half_accuracy"}  # curves whose end is saved besides
PER_SPLIT = {"split_n"}
UNITS = {
    "left_plateau": "step",
    "learned": "step",
    "last_step": "step",
    "phase_first_step": "step",
    "phase_last_step": "step",
    "seconds": "s",
    "training_loss": "nat",
}


def gather_cells(runs: Mapping[tuple[str, int], Run], order: Sequence[str]) -> xr.Dataset:
    """The records of runs of one family keyed by (variant, seed); NaN, or an empty text, where there is none.

    Every family: ``status``, ``last_step`` and ``seconds`` over (variant, seed). Variants come in ``order``.

    Sums, templates, text and families of others, over (variant, seed, split): ``last_accuracy``, ``learned`` (the step at which the split reaches
    90 % and stays) and, with step, ``split_accuracy``; over (split,) ``split_n``; templates also have ``last_loss`` and, with
    step, ``split_loss``; text also has ``split_perplexity``; sums also have ``half_accuracy`` and ``last_half_accuracy``, with
    half: held-out pairs apart by whether training shows their swap.

    Binding, over (variant, seed, step): ``accuracy``, ``follows_chain`` and ``follows_early_lines`` (of the programs that lines
    1 and 2 mislead), ``held_out_accuracy``, ``training_loss``, and with depth ``accuracy_by_depth``. Over (variant,
    seed): what ``summarise_run`` gives, ``status`` and ``phases``; with phase also ``phase_first_step``,
    ``phase_last_step`` and ``phase_accuracy``.
    """
    rows = []
    for name in order:
        seeds = sorted(seed for variant, seed in runs if variant == name)
        if seeds:
            cells = [_cell_dataset(runs[name, seed]).expand_dims(seed=[seed]) for seed in seeds]
            rows.append(xr.concat(cells, "seed", join="outer", data_vars="all").expand_dims(variant=[name]))
    dataset = xr.concat(rows, "variant", join="outer", data_vars="all")
    for name in {"status", "phases"} & set(map(str, dataset.data_vars)):
        dataset[name] = dataset[name].fillna("").astype(str)
    for name in PER_SPLIT & set(map(str, dataset.data_vars)):  # the same in every run
        dataset[name] = dataset[name].max(["variant", "seed"])
    for variable_name, variable in dataset.data_vars.items():
        variable.attrs["units"] = UNITS.get(str(variable_name), "1")
    return dataset


def _cell_dataset(run: Run) -> xr.Dataset:
    family = family_of(run.config.task)
    trajectory = trajectory_dataset(run.metrics, family=family)
    dataset = family.summarise_cell(trajectory)
    if dataset is None:
        dataset = _splits_cell(trajectory, family.cell_curves)
    return dataset.assign(status=str(run.status))


def _splits_cell(trajectory: xr.Dataset, curves: Sequence[str]) -> xr.Dataset:
    """The named curves, and of each split how it ended and when it was learned."""
    dataset = trajectory[[name for name in curves if name in trajectory]]
    last, steps = trajectory.isel(step=-1, drop=True), trajectory.step.values
    learned = [find_transition(steps, trajectory.split_accuracy.sel(split=split).values) for split in trajectory.split]
    dataset["learned"] = ("split", [np.nan if step is None else float(step) for step in learned])
    dataset["last_accuracy"] = last.split_accuracy
    for name, ending in LAST.items():
        if name in dataset:
            dataset[ending] = last[name]
    return dataset.assign(last_step=float(steps[-1]), seconds=read_seconds(trajectory), split_n=trajectory.split_n)


def read_seconds(trajectory: xr.Dataset) -> float:
    """How long training took, where it was recorded."""
    return float(trajectory.seconds.values[-1]) if "seconds" in trajectory else np.nan
