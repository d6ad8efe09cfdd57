"""Measure a run at every saved checkpoint, and those that were measured before only once; or every run of an experiment.

>>> dataset = measure_every_step(context, lambda model: xr.Dataset({"accuracy": …}))   # over (step, …)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import xarray as xr

from bindscope.errors import NotYet
from bindscope.studies.framework.curves import Curve, over_steps, plateau_of
from bindscope.studies.framework.experiments import Cell, Progress
from bindscope.studies.framework.results import CHECKPOINT, Context, Result, with_progress
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.runs.directory import Run

Part = TypeVar("Part")
N_BITS = 9  # of a stored number: three digits, which pack small
PACKED: dict[str, Any] = {"zlib": True, "complevel": 9}


def measure_every_step(
    context: Context, measure: Callable[[Transformer], xr.Dataset], reuse: bool = True
) -> xr.Dataset:
    """What ``measure`` gives at each checkpoint, over (step, …), with the hash of each step's weights beside it."""
    run = context.run
    known = known_parts(context.before) if reuse else {}
    parts = parts_of_steps(context, lambda step: measure(run.checkpoint(step)), known)
    dataset = xr.concat(parts, xr.IndexVariable("step", list(run.steps)), data_vars="all", combine_attrs="drop")
    for variable in dataset.variables.values():
        variable.encoding = {}
    for name in dataset.data_vars:
        dataset[name].encoding = dict(PACKED)
    return dataset.assign_coords({CHECKPOINT: ("step", hashes_of(run))})


def parts_of_steps(context: Context, measure: Callable[[int], Part], known: Mapping[str, Part]) -> list[Part]:
    """What ``measure`` gives at each saved step; what is ``known`` by the hash of a step's weights is taken from there."""
    run, found = context.run, dict(known)
    if not run.steps:
        raise NotYet("no checkpoint was saved yet")
    for step in with_progress(run.steps, context.on_progress):
        sha256 = run.manifest.checkpoints[step].sha256
        if sha256 not in found:
            found[sha256] = measure(step)
    return [found[sha256] for sha256 in hashes_of(run)]


def hashes_of(run: Run) -> list[str]:
    """The hash of the weights of each saved step."""
    return [run.manifest.checkpoints[step].sha256 for step in run.steps]


def known_parts(before: xr.Dataset | None) -> dict[str, xr.Dataset]:
    """What was saved of each checkpoint; what belongs to no step is measured again."""
    if before is None:
        return {}
    over_steps = before[[name for name in before.data_vars if "step" in before[name].dims]].drop_vars(CHECKPOINT)
    return {
        str(sha256): over_steps.isel(step=index, drop=True) for index, sha256 in enumerate(before[CHECKPOINT].values)
    }


def measure_cells(
    runs: Mapping[Cell, Run], measure: Callable[[Run], xr.Dataset], on_progress: Progress = None
) -> xr.Dataset:
    """What ``measure`` gives of each run, over (variant, seed, …); NaN where a run says nothing of what others do."""
    parts = [
        measure(run).expand_dims(variant=[cell.variant], seed=[cell.seed])
        for cell, run in with_progress(list(runs.items()), on_progress)
    ]
    return merge_parts(parts)


def merge_parts(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """One dataset of all, NaN where none says anything."""
    return xr.merge(parts, join="outer", compat="no_conflicts")


def steps_around_plateau(run: Run, on_plateau: Sequence[float], n_after: int) -> list[int]:
    """Saved steps nearest to some fractions of the plateau (0: its first step, 1: its last), the next ``n_after`` behind it,
    and the last; the last alone where a run has no plateau."""
    steps = list(run.steps)
    try:
        plateau = plateau_of(phases_of(trajectory_dataset(run.metrics, run.manifest.config)))
    except NotYet:
        plateau = None
    if plateau is None or len(steps) < 2:
        return steps[-1:]
    first, last = plateau
    chosen = {min(steps, key=lambda step: abs(step - first - fraction * (last - first))) for fraction in on_plateau}
    return sorted({*chosen, *[step for step in steps if step > last][:n_after], steps[-1]})


def untrained_model(context: Context) -> Transformer:
    """A fresh model of the run's own shape and initial scale: what training has to do better than."""
    import torch

    from bindscope.model.transformer import Transformer

    fresh = Transformer(context.run.config.model, torch.Generator().manual_seed(context.seed)).eval()
    return context.run.placement.place(fresh)


def round_bits(values: np.ndarray, n_bits: int = N_BITS) -> np.ndarray:
    """The nearest float32 with only so many bits before and behind the point; missing stays missing.

    >>> round_bits(np.array([0.123456789]))
    array([0.12353516], dtype=float32)
    """
    mantissa, exponent = np.frexp(values.astype(float))
    return np.ldexp(np.round(mantissa * 2**n_bits) / 2**n_bits, exponent).astype(np.float32)


def compute_trajectory(context: Context) -> xr.Dataset:
    """Every evaluation of the run, and whether its training has ended."""
    run = context.run
    dataset = trajectory_dataset(run.metrics, run.manifest.config)
    dataset.attrs |= {"status": run.status, "total_steps": run.manifest.total_steps}
    return dataset


def _first_split(name: str) -> Callable[[xr.Dataset], xr.Dataset]:
    """A number of the first split of the evaluations, with its interval where they have one."""

    def read(trajectory: xr.Dataset) -> xr.Dataset:
        first = trajectory.isel(split=0)
        return over_steps(first[name], first.get(f"{name}_low"), first.get(f"{name}_high"))

    return read


CURVES = (
    Curve(
        "accuracy",
        "accuracy",
        "Fraction of the test examples that are answered correctly, with a 95 % Wilson interval.",
        "trajectory",
        _first_split("split_accuracy"),
        "fraction",
    ),
    Curve(
        "loss",
        "evaluation loss",
        "Mean loss on the test examples. It can fall while accuracy stands still: answers become surer, not more correct.",
        "trajectory",
        _first_split("split_loss"),
    ),
)
RESULTS = (Result("trajectory", "reading the evaluations", compute_trajectory, metrics=True),)
