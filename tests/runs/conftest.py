from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bindscope.model.config import ModelConfig
from bindscope.runs.config import RunConfig, fit_model
from bindscope.runs.directory import Run
from bindscope.runs.execute import train_run
from bindscope.tasks.binding import BindingTask
from bindscope.training.config import CheckpointPlan, OptimizerConfig, ScheduleConfig, TrainingConfig


@pytest.fixture(scope="session")
def config() -> RunConfig:
    """A run of a second: twelve steps of a tiny model on three-line programs."""
    task = BindingTask(lines=3, max_depth=2, queries=3, balance="weights")
    shape = ModelConfig(1, 1, n_layers=2, n_heads=2, d_model=16, d_head=8, d_mlp=32)
    training = TrainingConfig(
        steps=12,
        batch_size=8,
        optimizer=OptimizerConfig(lr=1e-2),
        schedule=ScheduleConfig("linear", warmup_steps=2),
        checkpoints=CheckpointPlan(every=4, per_octave=1),
        evaluate_every=4,
        evaluation_size=32,
        save_every=3,
    )
    return RunConfig("tiny", task, fit_model(shape, task), training, seed=1)


@pytest.fixture(scope="session")
def trained(config, tmp_path_factory) -> Path:
    """Where the finished run lies; tests that change it take a copy."""
    path = tmp_path_factory.mktemp("runs") / "tiny"
    train_run(config, path, device="cpu", threads=1)
    return path


@pytest.fixture
def run(trained, tmp_path) -> Run:
    """A finished run of one's own."""
    return Run.open(shutil.copytree(trained, tmp_path / "tiny"))


@pytest.fixture
def half_done(config, tmp_path) -> Run:
    """A run interrupted at the evaluation of step 8, after the state of step 6 was saved."""
    n_evaluations = 0

    def fail_at_step_8(model):
        nonlocal n_evaluations
        n_evaluations += 1
        if n_evaluations == 3:
            raise KeyboardInterrupt
        return {"watched": [0.0]}

    path = tmp_path / "half"
    with pytest.raises(KeyboardInterrupt):
        train_run(replace(config, name="half"), path, device="cpu", threads=1, evaluate=fail_at_step_8)
    return Run.open(path)
