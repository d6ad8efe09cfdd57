"""A run whose mechanism is known because its weights are written: untrained checkpoints, then the constructed model."""

from __future__ import annotations

from pathlib import Path

import torch

from bindscope.model.transformer import Transformer
from bindscope.runs.config import RunConfig, config_to_mapping
from bindscope.runs.directory import Run
from bindscope.runs.manifest import Manifest
from bindscope.tasks.binding import BindingTask
from bindscope.theory.constructed import construct_dereferencer
from measures.simulated_runs import SimulatedRun

TASK = BindingTask(lines=6, max_depth=2)
AGAIN = BindingTask(lines=8, max_depth=2, reassign=0.3)  # variables may be assigned again
MASTERED = 1400  # the step at which the simulated evaluations show the last depth as learned


def make_run(
    path: Path, steps: tuple[int, ...] = (0, 500, 1000, 1450, 2000), status: str = "finished", task: BindingTask = TASK
) -> Run:
    """Evaluations of a simulated run in three phases; the weights dereference from ``MASTERED`` on."""
    solved = construct_dereferencer(task.lines, task.max_depth)
    fresh = Transformer(solved.config, torch.Generator().manual_seed(0))
    config = RunConfig("made", task, solved.config)
    manifest = Manifest("made", config_to_mapping(config), {}, 2000, status, thinned=True)  # type: ignore[arg-type]
    run = Run.create(path, manifest)
    for step in steps:
        run.write_checkpoint(step, (solved if step >= MASTERED else fresh).state_dict())
    for record in SimulatedRun(masters=(MASTERED, 1200), n_lines=task.lines, n_examples=3000).records():
        run.keep_evaluation(record)
    return Run.open(path)
