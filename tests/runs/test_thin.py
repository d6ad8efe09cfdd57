from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.runs.directory import Run
from bindscope.runs.execute import resume_run
from bindscope.runs.thin import choose_steps, thin_run


def size_of(path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def test_a_compact_copy_keeps_the_story_and_halves_the_weights(run, tmp_path):
    copy = thin_run(run, tmp_path / "copy", steps=(0, "4", "last"))
    assert copy.steps == (0, 4, 12)
    assert copy.metrics == run.metrics
    assert copy.config == run.config
    assert copy.status == "finished"
    for step in copy.steps:
        for name, value in copy.checkpoint(step).state_dict().items():
            original = run.checkpoint(step).state_dict()[name]
            assert torch.equal(value, original.half().float()), name
    assert not any((copy.path / "optimizer").iterdir())
    assert size_of(copy.path / "checkpoints") < 0.6 * size_of(run.path / "checkpoints") * 3 / 6


def test_whole_precision_can_be_kept(run, tmp_path):
    copy = thin_run(run, tmp_path / "copy", steps=["last"], dtype="float32")
    for name, value in copy.weights().items():
        assert torch.equal(value, run.weights()[name])


def test_a_compact_copy_cannot_be_resumed(run, tmp_path):
    copy = thin_run(run, tmp_path / "copy", steps=["last"])
    with pytest.raises(BindscopeError, match="holds no state to resume from"):
        resume_run(copy.path)


def test_a_step_that_was_not_kept_or_does_not_fit_leaves_nothing_behind(run, tmp_path):
    with pytest.raises(BindscopeError, match="step 3 was not saved"):
        thin_run(run, tmp_path / "copy", steps=[3])
    model = run.checkpoint()
    model.embed.weight.data[0, 0] = 1e6
    run.keep_weights(13, model)
    with pytest.raises(BindscopeError, match=r"step 13: 'embed.weight' does not fit into half precision"):
        thin_run(run, tmp_path / "copy", steps=[0, 13])
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_an_existing_directory_is_not_overwritten(run):
    with pytest.raises(BindscopeError, match="exists already"):
        thin_run(run, run.path, steps=["last"])
    Run.open(run.path).checkpoint()


def test_checkpoints_are_chosen_where_the_run_changes():
    steps = np.arange(0, 5001, 100)
    accuracy = 0.5 + 0.5 / (1 + np.exp(-(steps - 2000) / 60))  # a plateau, then a sudden rise at step 2000
    records = [{"step": int(s), "watched": {"depth 1": a, "depth 2": a}} for s, a in zip(steps, accuracy)]
    run = SimpleNamespace(steps=tuple(steps.tolist()), metrics=records)
    chosen = choose_steps(run, 16)
    assert len(chosen) == 16
    assert chosen[0] == 0
    assert chosen[-1] == 5000
    near = [step for step in chosen if 1800 <= step <= 2200]
    assert len(near) >= 4  # of the five checkpoints there
    assert choose_steps(run, 100) == steps.tolist()
