"""What the runs of a sweep recorded, side by side in one dataset over (variant, seed)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.measures.binding.phases import PHASES, find_transition, lowest_accuracy
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

CURVES = ("accuracy_by_depth", "follows_chain", "follows_early_lines", "training_loss")
POOL_CURVES = ("pool_accuracy", "pool_perplexity", "half_accuracy", "training_loss")
TEMPLATE_CURVES = ("pool_accuracy", "pool_loss", "training_loss")
PER_POOL = {"pool_n"}
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

    Sums, templates and text, over (variant, seed, pool): ``last_accuracy``, ``learned`` (the step at which the pool reaches
    90 % and stays) and, with step, ``pool_accuracy``; over (pool,) ``pool_n``; templates also have ``last_loss`` and, with
    step, ``pool_loss``; text also has ``pool_perplexity``; sums also have ``half_accuracy`` and ``last_half_accuracy``, with
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
    for name in PER_POOL & set(map(str, dataset.data_vars)):  # the same in every run
        dataset[name] = dataset[name].max(["variant", "seed"])
    for variable_name, variable in dataset.data_vars.items():
        variable.attrs["units"] = UNITS.get(str(variable_name), "1")
    return dataset


def summarise_run(trajectory: xr.Dataset) -> dict[str, float]:
    """How a run went, in numbers.

    ``left_plateau`` is the step at which misleading programs are first answered by the chain more often than not and
    go on being so, ``learned`` the step at which every depth reaches 90 % and stays; NaN where it never happened.
    """
    steps = trajectory.step.values
    worst = lowest_accuracy(trajectory.accuracy_by_depth.values)
    left = find_transition(steps, trajectory.follows_chain.values, threshold=0.5)
    learned = find_transition(steps, worst, threshold=0.9)
    return {
        "left_plateau": np.nan if left is None else left,
        "learned": np.nan if learned is None else learned,
        "last_step": float(steps[-1]),
        "last_accuracy": float(trajectory.pool_accuracy.sel(pool="test").values[-1]),
        "worst_depth": float(worst[-1]),
        "seconds": _seconds(trajectory),
    }


def _cell_dataset(run: Run) -> xr.Dataset:
    trajectory = trajectory_dataset(run.metrics)
    dataset = _binding_cell(trajectory) if trajectory.attrs["family"] == "binding" else _pools_cell(trajectory)
    return dataset.assign(status=str(run.status))


def _pools_cell(trajectory: xr.Dataset) -> xr.Dataset:
    of_templates = trajectory.attrs["family"] == "templates"
    dataset = trajectory[[name for name in (TEMPLATE_CURVES if of_templates else POOL_CURVES) if name in trajectory]]
    last, steps = trajectory.isel(step=-1, drop=True), trajectory.step.values
    learned = [find_transition(steps, trajectory.pool_accuracy.sel(pool=pool).values) for pool in trajectory.pool]
    dataset["learned"] = ("pool", [np.nan if step is None else float(step) for step in learned])
    dataset["last_accuracy"] = last.pool_accuracy
    if of_templates:
        dataset["last_loss"] = last.pool_loss
    if "half_accuracy" in trajectory:
        dataset["last_half_accuracy"] = last.half_accuracy
    return dataset.assign(last_step=float(steps[-1]), seconds=_seconds(trajectory), pool_n=trajectory.pool_n)


def _binding_cell(trajectory: xr.Dataset) -> xr.Dataset:
    phases = {phase.name: phase for phase in phases_of(trajectory)}
    by_phase: dict[str, Any] = {
        "phase_first_step": (
            "phase",
            [float(phases[name].first_step) if name in phases else np.nan for name in PHASES],
        ),
        "phase_last_step": ("phase", [float(phases[name].last_step) if name in phases else np.nan for name in PHASES]),
        "phase_accuracy": ("phase", [phases[name].accuracy if name in phases else np.nan for name in PHASES]),
    }
    dataset = trajectory[[name for name in CURVES if name in trajectory]]
    pools = trajectory.pool_accuracy
    dataset["accuracy"] = pools.sel(pool="test", drop=True)
    n = trajectory.pool_n
    dataset["n"] = n.sel(pool="test", drop=True)
    dataset["n_misleading"] = trajectory.n_misleading.astype(float)
    if "held_out" in pools.pool.values:
        dataset["held_out_accuracy"] = pools.sel(pool="held_out", drop=True)
        dataset["n_held_out"] = n.sel(pool="held_out", drop=True)
    dataset = dataset.assign({**by_phase, **summarise_run(trajectory), "phases": ", ".join(phases)})
    return dataset.assign_coords(phase=list(PHASES))


def _seconds(trajectory: xr.Dataset) -> float:
    return float(trajectory.seconds.values[-1]) if "seconds" in trajectory else np.nan
