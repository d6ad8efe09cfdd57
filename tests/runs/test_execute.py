from __future__ import annotations

import errno
import json
import os
import shutil

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.runs.config import DatasetConfig, RunConfig, config_to_mapping, fit_model, override
from bindscope.runs.data import hash_batch, prepare_data
from bindscope.runs.directory import Run
from bindscope.runs.execute import resume_run, train_run
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.templates import TemplateTask
from bindscope.training.config import TrainingConfig
from rewriting import replace_in_manifest
from torchrun import run_by_torchrun


def assert_same_weights(one: Run, other: Run) -> None:
    for name, value in one.weights().items():
        assert torch.equal(value, other.weights()[name]), name


def test_an_interrupted_run_is_finished_as_if_it_had_not_been(half_done, run):
    assert half_done.load_state().tally.step == 6
    glances = []
    resumed = resume_run(half_done.path, observer=glances.append)
    assert glances[0].step > 6
    assert resumed.status == "finished"
    assert resumed.steps == run.steps
    assert_same_weights(resumed, run)
    assert [record["step"] for record in resumed.metrics] == [0, 4, 8, 12]


def test_resuming_a_finished_run_changes_nothing(run):
    before = {p: p.read_bytes() for p in run.path.rglob("*") if p.is_file()}
    assert resume_run(run.path).status == "finished"
    assert {p: p.read_bytes() for p in run.path.rglob("*") if p.is_file()} == before


def test_the_same_config_gives_the_same_run_and_another_seed_another(config, run, tmp_path):
    again = train_run(config, tmp_path / "again", device="cpu", threads=1)
    assert_same_weights(again, run)
    other = train_run(override(config, {"seed": 2}), tmp_path / "other", device="cpu", threads=1)
    assert not torch.equal(other.weights("first")["embed.weight"], run.weights("first")["embed.weight"])
    assert other.manifest.data != run.manifest.data


def test_nothing_is_overwritten_and_nothing_made_when_a_setting_is_wrong(config, run, tmp_path):
    with pytest.raises(BindscopeError, match="exists already"):
        train_run(config, run.path, device="cpu")
    late = override(config, {"training.checkpoints.keep": "99"})
    with pytest.raises(BindscopeError, match="step 99 lies beyond"):
        train_run(late, tmp_path / "new", device="cpu")
    with pytest.raises(BindscopeError, match="unknown device"):
        train_run(config, tmp_path / "new", device="gpu")
    with pytest.raises(BindscopeError, match="threads"):
        train_run(config, tmp_path / "new", device="cpu", threads=0)
    assert not (tmp_path / "new").exists()


def test_a_model_that_cannot_be_made_leaves_no_run_behind(config, tmp_path, monkeypatch):
    def fail(*arguments):
        raise MemoryError

    monkeypatch.setattr("bindscope.runs.execute.Transformer", fail)
    with pytest.raises(MemoryError):
        train_run(config, tmp_path / "huge", device="cpu", threads=1)
    assert not (tmp_path / "huge").exists()


def test_a_run_stopped_early_says_so(config, tmp_path):
    eager = override(config, {"training.stop_at": 0.5})
    run = train_run(eager, tmp_path / "eager", device="cpu", threads=1, evaluate=lambda model: {"watched": [1.0]})
    assert run.status == "stopped early"
    assert run.steps[-1] == 4
    assert resume_run(run.path).status == "stopped early"


def test_training_that_diverges_stays_resumable_up_to_its_last_good_state(config, tmp_path):
    wild = override(config, {"training.optimizer.lr": 1e30, "training.schedule.warmup_steps": 0})
    with pytest.raises(BindscopeError, match="training diverged at step"):
        train_run(wild, tmp_path / "wild", device="cpu", threads=1, evaluate=lambda model: {"watched": [0.0]})
    run = Run.open(tmp_path / "wild")
    assert run.status == "interrupted"
    assert run.load_state() is not None
    for step in run.steps:
        assert all(value.isfinite().all() for value in run.weights(step).values())


@pytest.mark.parametrize("fails_at", [20, 33, 50])
def test_a_full_disk_is_one_sentence_and_after_making_room_the_run_goes_on(
    config, run, tmp_path, monkeypatch, fails_at
):
    real, count = os.fsync, 0

    def fill_up(handle):
        nonlocal count
        count += 1
        if count >= fails_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", fill_up)
    with pytest.raises(BindscopeError, match="no space left to write it"):
        train_run(config, tmp_path / "full", device="cpu", threads=1)
    monkeypatch.setattr(os, "fsync", real)
    assert_same_weights(resume_run(tmp_path / "full"), run)


def test_a_run_is_not_resumed_on_other_data(half_done):
    digest = half_done.manifest.data["sha256"]
    replace_in_manifest(half_done.path, digest, digest[::-1])
    before = (half_done.path / "metrics.jsonl").read_bytes()
    with pytest.raises(BindscopeError, match="not what this run began with"):
        resume_run(half_done.path)
    assert (half_done.path / "metrics.jsonl").read_bytes() == before


def test_a_fixed_dataset_is_seen_in_epochs_and_evaluated_on_its_own_test_split(config, tmp_path):
    fixed = override(
        config,
        {
            "task.lines": 6,
            "training.data": "fixed",
            "training.epochs": 2,
            "dataset.train": 40,
            "dataset.validation": 4,
            "dataset.test": 20,
            "training.evaluation_size": 16,
        },
    )
    data = prepare_data(fixed)
    epochs = [[tuple(row) for step in range(s, s + 5) for row in data.loader.batch(step).tokens] for s in (0, 5)]
    assert len(set(epochs[0])) == 40
    assert sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] != epochs[1]
    programs = {row[:24] for row in epochs[0]}
    assert data.splits["test"].tokens.shape == (16, fixed.task.n_positions)
    assert not programs & {tuple(row[:24]) for row in data.splits["test"].tokens}

    run = train_run(fixed, tmp_path / "fixed", device="cpu", threads=1)
    assert run.steps[-1] == 10
    assert run.manifest.data["kind"] == "fixed"
    assert run.metrics[-1]["test"]["n"] == 16


def test_a_fixed_dataset_is_seen_for_a_number_of_steps_and_an_interrupted_run_goes_on_to_them(config, tmp_path):
    sizes = {"training.data": "fixed", "dataset.train": 40, "dataset.test": 0, "training.epochs": 1}
    longer = override(override(config, sizes), {"training.steps": 12})
    whole = train_run(longer, tmp_path / "whole", device="cpu", threads=1)
    assert (whole.steps[-1], whole.manifest.total_steps, whole.status) == (12, 12, "finished")

    def stop(progress):
        if progress.step == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(longer, tmp_path / "half", device="cpu", threads=1, observer=stop)
    resumed = resume_run(tmp_path / "half")
    assert (resumed.steps[-1], resumed.status) == (12, "finished")
    assert_same_weights(resumed, whole)


def test_tasks_without_splits_of_their_own_are_sampled_once(config):
    task = AssignAddTask()
    training = TrainingConfig(data="fixed", epochs=3, batch_size=10)
    sums = RunConfig("sums", task, fit_model(config.model, task), training, dataset=DatasetConfig(train=30))
    data, same = prepare_data(sums), prepare_data(sums)
    assert hash_batch(data.loader.batch(7)) == hash_batch(same.loader.batch(7))
    first, later = (
        [tuple(row) for s in steps for row in data.loader.batch(s).tokens] for steps in (range(3), range(6, 9))
    )
    assert sorted(first) == sorted(later)


@pytest.mark.timeout(900)
def test_two_processes_make_one_run_and_the_first_alone_writes_it(config, run, tmp_path):
    """Eight rows a step in two shards of four; a second torchrun into the same directory is refused by both."""
    program = tmp_path / "train.py"
    program.write_text(
        "import json, sys; from bindscope.errors import BindscopeError\n"
        "from bindscope.runs.config import config_from_mapping; from bindscope.runs.execute import train_run\n"
        "config = config_from_mapping(json.loads(sys.argv[1]))\n"
        "train_run(config, sys.argv[2], device='cpu', threads=1)\n"
        "try: train_run(config, sys.argv[2], device='cpu', threads=1)\n"
        "except BindscopeError as error: print(error, flush=True)\n"
    )
    output = run_by_torchrun(
        program,
        [json.dumps(config_to_mapping(config)), str(tmp_path / "two")],
        before=lambda: shutil.rmtree(tmp_path / "two", ignore_errors=True),
    )
    assert output.count("exists already") == 2
    two = Run.open(tmp_path / "two")
    assert two.status == "finished"
    assert two.manifest.machine["processes"] == 2
    assert two.steps == run.steps
    for here, there in zip(two.metrics, run.metrics):
        assert here["step"] == there["step"]
        assert here["loss"] == pytest.approx(there["loss"], abs=1e-4)


def test_template_tasks_train_on_their_own_set_and_test_on_unseen_symbols(tmp_path):
    task = TemplateTask(alphabet=16, test_alphabet=8)
    model = fit_model(ModelConfig(1, 1, n_layers=1, n_heads=1, d_model=8, d_head=8, d_mlp=8, causal=False), task)
    training = TrainingConfig(data="fixed", epochs=3, batch_size=8, evaluation_size=8)
    config = RunConfig("same", task, model, training)
    batches = [prepare_data(config).loader.batch(step).tokens for step in range(2)]
    assert sorted(map(tuple, np.concatenate(batches))) == sorted(map(tuple, task.training_set().tokens))
    run = train_run(config, tmp_path / "same", device="cpu", threads=1)
    assert run.steps[-1] == 6
    assert {"train", "validation", "test"} <= run.metrics[-1].keys()
