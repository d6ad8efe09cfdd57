"""Runs of study 3: simpler networks in the transformer's place, training the last layer alone, and ending early."""

from __future__ import annotations

import shutil

import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.runs.config import override
from bindscope.runs.directory import Run
from bindscope.runs.execute import resume_run, train_run
from bindscope.studies.framework.presets import find_preset

TINY = {
    "model.d_model": 16, "model.n_heads": 2, "model.d_head": 8, "model.d_mlp": 16, "task.alphabet": 16,
    "task.test_alphabet": 16, "training.batch_size": 16, "training.epochs": 6, "training.evaluate_every": 2,
    "training.evaluation_size": 32, "training.save_every": 2, "training.stop_below": None, "training.stop_fitted": None,
}  # fmt: skip


def tiny(**changes):
    named = {key.replace("__", "."): value for key, value in changes.items()}
    return override(find_preset("templates-same-different").config, {**TINY, "name": "tiny", **named})


def train(config, path) -> Run:
    return train_run(config, path, device="cpu", threads=1)


def interrupt(config, path, at: int) -> Run:
    """The run, stopped by a key at its ``at``-th evaluation."""
    n_evaluations = 0

    def evaluate(model):
        nonlocal n_evaluations
        n_evaluations += 1
        if n_evaluations == at:
            raise KeyboardInterrupt
        return {"watched": [0.0]}

    with pytest.raises(KeyboardInterrupt):
        train_run(config, path, device="cpu", threads=1, evaluate=evaluate)
    return Run.open(path)


def test_an_mlp_with_xxt_tells_equal_unseen_symbols_from_different_ones_within_seconds(tmp_path):
    changes = {
        "training.epochs": 120,
        "model.d_model": 64,
        "training.evaluate_every": 60,
        "training.save_every": 120,
        "baseline.kind": "relation-mlp",
    }
    run = train(override(tiny(), changes), tmp_path / "run")
    record = run.metrics[-1]
    assert record["test"]["loss"] < 0.5 < run.metrics[0]["test"]["loss"]
    assert record["train"]["loss"] < 0.05


@pytest.mark.parametrize("kind", ["one-hot-mlp", "lstm"])
def test_an_interrupted_run_of_a_simpler_network_goes_on_as_if_it_had_not_been(kind, tmp_path):
    config = tiny(baseline__kind=kind)
    whole = train(config, tmp_path / "whole")
    half = interrupt(config, tmp_path / "half", at=3)
    assert 0 < half.load_state().tally.step < 6
    resumed = resume_run(half.path)
    assert resumed.status == "finished"
    for name, value in whole.weights().items():
        assert torch.equal(value, resumed.weights()[name]), name


def test_what_looks_into_a_transformer_refuses_a_run_without_one(tmp_path):
    run = train(tiny(baseline__kind="rnn", training__epochs=1), tmp_path / "run")
    with pytest.raises(BindscopeError, match="trained a rnn, which has no attention to look into"):
        run.checkpoint()


def test_training_the_last_layer_leaves_all_else_bit_for_bit(tmp_path):
    run = train(tiny(training__trained="last"), tmp_path / "run")
    first, last = run.weights("first"), run.weights("last")
    changed = {name for name in first if not torch.equal(first[name], last[name])}
    assert changed == {"unembed.weight"}
    resumed = interrupt(tiny(training__trained="last"), tmp_path / "half", at=3)
    again = resume_run(resumed.path).weights()
    assert all(torch.equal(again[name], last[name]) for name in last)


def test_the_last_layer_alone_needs_one_of_its_own():
    with pytest.raises(BindscopeError, match="'last' needs a transformer with an unembedding of its own"):
        tiny(training__trained="last", baseline__kind="rnn")
    with pytest.raises(BindscopeError, match="'last' needs a transformer"):
        override(find_preset("templates-copy").config, {"training.trained": "last"})


@pytest.mark.parametrize("ending", ["stop_below", "stop_fitted"])
def test_a_run_ends_when_new_symbols_are_answered_or_nothing_is_left_to_learn(ending, tmp_path):
    config = tiny(baseline__kind="relation-mlp", training__epochs=400, training__evaluate_every=5)
    config = override(config, {"model.d_model": 64, "training.save_every": 400, f"training.{ending}": 0.5})
    run = train(config, tmp_path / "run")
    losses = [record["loss" if ending == "stop_fitted" else "watched_loss"] for record in run.metrics]
    assert run.status == "stopped early"
    assert run.metrics[-1]["step"] < 400
    assert losses[-1] <= 0.5
    assert losses[-2] <= 0.5  # at two evaluations running
    assert losses[-3] is None or losses[-3] > 0.5


def test_a_copy_of_a_run_of_a_simpler_network_opens_anywhere(tmp_path):
    run = train(tiny(baseline__kind="embedding-mlp", training__epochs=1), tmp_path / "run")
    copied = Run.open(shutil.copytree(run.path, tmp_path / "copy"))
    assert copied.config.baseline.kind == "embedding-mlp"
    assert copied.metrics == run.metrics
