"""What an experiment keeps of one binding run."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from bindscope.measures.binding.phases import PHASES, lowest_accuracy
from bindscope.measures.phases import find_transition
from bindscope.studies.binding.learning.trajectory import find_phases
from bindscope.studies.framework.cells import read_seconds

CURVES = ("accuracy_by_depth", "follows_chain", "follows_early_lines", "training_loss")


def summarise_cell(trajectory: xr.Dataset) -> xr.Dataset:
    """Its curves, its phases, and how it went in numbers."""
    phases = {phase.name: phase for phase in find_phases(trajectory)}
    by_phase: dict[str, Any] = {
        f"phase_{name}": ("phase", [float(getattr(phases[p], name)) if p in phases else np.nan for p in PHASES])
        for name in ("first_step", "last_step", "accuracy")
    }
    dataset = trajectory[[name for name in CURVES if name in trajectory]]
    splits = trajectory.split_accuracy
    dataset["accuracy"] = splits.sel(split="test", drop=True)
    n = trajectory.split_n
    dataset["n"] = n.sel(split="test", drop=True)
    dataset["n_misleading"] = trajectory.n_misleading.astype(float)
    if "held_out" in splits.split.values:
        dataset["held_out_accuracy"] = splits.sel(split="held_out", drop=True)
        dataset["n_held_out"] = n.sel(split="held_out", drop=True)
    dataset = dataset.assign({**by_phase, **summarise_run(trajectory), "phases": ", ".join(phases)})
    return dataset.assign_coords(phase=list(PHASES))


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
        "last_accuracy": float(trajectory.split_accuracy.sel(split="test").values[-1]),
        "worst_depth": float(worst[-1]),
        "seconds": read_seconds(trajectory),
    }
