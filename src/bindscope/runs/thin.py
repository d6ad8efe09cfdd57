"""A compact copy of a run that can be shipped: some checkpoints in half precision, no state to resume from."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bindscope.runs.directory import Run, write_empty_run
from bindscope.runs.files import explain_failure
from bindscope.runs.folders import new_directory
from bindscope.runs.manifest import Recorded
from bindscope.runs.weights import StorageType


def thin_run(run: Run, destination: Path | str, steps: Iterable[int | str], dtype: StorageType = "float16") -> Run:
    """Copy the manifest, all metrics and results, and the weights of ``steps``; the original is only read.

    >>> thin_run(Run.open("runs/laptop"), "demo/laptop", steps=(0, 1000, 2200, "last"))
    """
    chosen = sorted({run.find_step(step) for step in steps})
    destination = Path(destination)
    manifest = dataclasses.replace(run.manifest, thinned=True, checkpoints={}, evaluations=Recorded())
    with new_directory(destination) as unfinished:
        write_empty_run(unfinished, manifest)
        copy = Run(unfinished, manifest)
        for record in run.metrics:
            copy.keep_evaluation(record)
        for step in chosen:
            copy.write_checkpoint(step, run.weights(step), dtype)
        with explain_failure(destination):
            for name in run.result_names:
                shutil.copyfile(run.path / "results" / f"{name}.nc", unfinished / "results" / f"{name}.nc")
    return Run.open(destination)


def choose_steps(run: Run, most: int) -> list[int]:
    """At most ``most`` checkpoints, dense where the watched accuracies move: each next one halves the longest stretch.

    Length is measured along the run's curve: the accuracies that the task watches, and the step both in itself and on a
    logarithmic scale, so that plateaus keep a few too. The first and the last checkpoint are always among them.
    """
    steps = np.array(run.steps)
    length = _path_length(run, steps)
    chosen = [0, len(steps) - 1]
    while len(chosen) < min(most, len(steps)):
        gaps = [(length[after] - length[here], here, after) for here, after in pairwise(chosen) if after - here > 1]
        _, here, after = max(gaps)
        middle = (length[here] + length[after]) / 2
        inside = np.arange(here + 1, after)
        chosen = sorted({*chosen, int(inside[np.abs(length[inside] - middle).argmin()])})
    return [int(steps[index]) for index in sorted(set(chosen))]


def _path_length(run: Run, steps: np.ndarray) -> np.ndarray:
    """How far along its curve the run is at each checkpoint, [step]."""
    records = [(record["step"], _watched(record)) for record in run.metrics]
    measured = np.array([step for step, _ in records])
    curves = np.array([values for _, values in records], dtype=float)  # [evaluation, watched]
    moved = np.stack([np.interp(steps, measured, np.nan_to_num(curve)) for curve in curves.T], axis=1)
    spread = np.stack([steps / max(steps[-1], 1), np.log1p(steps) / max(np.log1p(steps[-1]), 1)], axis=1)
    path = np.concatenate([moved, spread], axis=1)  # [checkpoint, coordinate]
    return np.concatenate([[0], np.abs(np.diff(path, axis=0)).sum(1).cumsum()])


def _watched(record: Mapping[str, Any]) -> list[float | None]:
    watched = record["watched"]
    return list(watched.values()) if isinstance(watched, Mapping) else list(watched)
