"""A run on modular addition whose mechanism is known because its weights are written: an untrained checkpoint, then the adder."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import torch

from bindscope.model.transformer import Transformer
from bindscope.runs.config import RunConfig, config_to_mapping
from bindscope.runs.directory import Run
from bindscope.runs.manifest import Manifest
from measures.constructed_adder import TASK, adder_config, construct_adder

STEPS = (0, 100, 200)
LEARNED = 100  # from this step on the weights add


def make_sums(path: Path, steps: tuple[int, ...] = STEPS, **changes: object) -> Run:
    """``changes`` give the model another shape, which then never learns."""
    config = dataclasses.replace(adder_config(), **changes)  # type: ignore[arg-type]
    fresh = Transformer(config, torch.Generator().manual_seed(7))
    manifest = Manifest("made", config_to_mapping(RunConfig("made", TASK, config)), {}, 200, "finished", thinned=True)
    run = Run.create(path, manifest)
    adder = fresh if changes else construct_adder()
    for step in steps:
        run.write_checkpoint(step, (adder if step >= LEARNED else fresh).state_dict())
    return Run.open(path)


def keep_step(run: Run, step: int) -> Run:
    """The same run with one checkpoint more."""
    run.write_checkpoint(step, construct_adder().state_dict())
    return Run.open(run.path)
