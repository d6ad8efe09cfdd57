"""The constructed transformer (``theory.constructed``) as a run that is opened, served and patched like a learned one.

It is the ideal mechanism beside the learned ones: weights that were written, one checkpoint at step 0, one evaluation.
What is claimed about learning cannot be tested on it.

>>> construct_run(Path("runs/binding-constructed"), lines=16, max_depth=4)
"""

from __future__ import annotations

from pathlib import Path

from bindscope.measures.evaluation import build_evaluator
from bindscope.runs.config import RunConfig, config_to_mapping
from bindscope.runs.directory import Run, write_empty_run
from bindscope.runs.folders import new_directory
from bindscope.runs.manifest import CONSTRUCTED, Manifest, describe_origin
from bindscope.runs.placement import CPU, Placement
from bindscope.tasks.binding import BindingTask
from bindscope.theory.constructed import construct_dereferencer
from bindscope.training.config import TrainingConfig


def construct_run(
    destination: Path, lines: int = 16, max_depth: int = 4, n: int = 2000, placement: Placement = CPU
) -> Run:
    """A new run with the dereferencer for programs of this size, evaluated on ``n`` of each split."""
    placement = placement.check()
    model = construct_dereferencer(lines, max_depth)
    task = BindingTask(lines=lines, max_depth=max_depth)
    config = RunConfig(destination.name, task, model.config, TrainingConfig(steps=1))
    manifest = Manifest(
        name=config.name,
        config=config_to_mapping(config),
        seeds={},
        total_steps=0,
        status="finished",
        thinned=True,
        data={"kind": CONSTRUCTED, "lines": lines, "max_depth": max_depth, **placement.recorded},
        **describe_origin(placement.device, n_threads=0, n_processes=0),
    )
    with new_directory(destination) as unfinished:
        write_empty_run(unfinished, manifest)
        run = Run(unfinished, manifest)
        run.write_checkpoint(0, model.state_dict())
        evaluate = build_evaluator(task, n, config.seeds["evaluation"])
        run.keep_evaluation({"step": 0, **evaluate(placement.place(model))})
    return Run.open(destination)
