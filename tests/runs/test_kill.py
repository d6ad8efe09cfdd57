"""Real processes, killed with SIGKILL at random moments and in the middle of writing, and resumed until they finish."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from bindscope.runs.config import RunConfig, config_to_mapping, override
from bindscope.runs.directory import Run
from bindscope.runs.lock import LOCK_FILE, is_locked
from runs.interrupted import train_or_resume

VARIANTS = {
    "adamw": {},
    "dropout": {"model.dropout": 0.2},
    "stages": {"task.curriculum": {"first_letters": 2, "pass_at": 0.01}, "training.steps": 24},
    "muon": {"training.optimizer.name": "muon", "model.dropout": 0.1},
}


@pytest.fixture(scope="module")
def processes():
    """Processes that start with torch already imported, so that a test can afford many of them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["runs.interrupted", "torch._dynamo"])
    return context


def start(processes, config: RunConfig, path: Path, die_at: int | None = None):
    process = processes.Process(target=train_or_resume, args=(config, path, die_at))
    process.start()
    return process


def finish(processes, config: RunConfig, path: Path) -> Run:
    process = start(processes, config, path)
    process.join()
    assert process.exitcode == 0
    return Run.open(path)


def without_clock(run: Run) -> list[dict]:
    return [{key: value for key, value in record.items() if key != "elapsed"} for record in run.metrics]


def assert_same_run(killed: Run, whole: Run) -> None:
    """Every checkpoint, the metrics and the state of the optimizer, bit for bit, and nothing left over."""
    assert killed.status == whole.status == "finished"
    assert killed.steps == whole.steps
    for step in whole.steps:
        for name, value in whole.weights(step).items():
            assert torch.equal(value, killed.weights(step)[name]), (step, name)
    assert without_clock(killed) == without_clock(whole)
    one, other = killed.load_state(), whole.load_state()
    assert replace(one.tally, elapsed=0) == replace(other.tally, elapsed=0)
    assert one.optimizer.keys() == other.optimizer.keys()
    assert all(torch.equal(value, other.optimizer[name]) for name, value in one.optimizer.items())
    files = [{str(p.relative_to(run.path)) for p in run.path.rglob("*") if p.is_file()} for run in (killed, whole)]
    assert files[0] == files[1]


@pytest.mark.parametrize(("variant", "stride"), [("adamw", 1), ("dropout", 2), ("muon", 3)])
def test_a_run_killed_in_the_middle_of_its_writes_ends_as_if_it_never_was(processes, config, tmp_path, variant, stride):
    """Each process gets some disk operations further than the one before: the kills fall on every kind of write."""
    config = override(config, VARIANTS[variant])
    whole = finish(processes, config, tmp_path / "whole")
    n_kills = 0
    for die_at in range(1, 100, stride):
        process = start(processes, config, tmp_path / "killed", die_at)
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -9
        n_kills += 1
    assert n_kills >= 5
    assert_same_run(Run.open(tmp_path / "killed"), whole)


def test_a_run_killed_at_random_moments_ends_as_if_it_never_was(processes, config, tmp_path):
    """A kill comes at any time up to a few steps after a state was saved, so that the run still gets somewhere."""
    longer = override(
        config, {"model.dropout": 0.1, "training.steps": 80, "training.save_every": 4, "training.evaluate_every": 20}
    )
    whole = finish(processes, longer, tmp_path / "whole")
    moments, n_kills = random.Random(0), 0
    for _ in range(6):
        saved_before = saved_step(tmp_path / "killed")
        process = start(processes, longer, tmp_path / "killed")
        while process.exitcode is None and saved_step(tmp_path / "killed") == saved_before:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.03))
        process.kill()
        process.join()
        n_kills += process.exitcode == -9
    assert n_kills >= 2
    assert_same_run(finish(processes, longer, tmp_path / "killed"), whole)


def saved_step(path: Path) -> int:
    latest = path / "optimizer" / "latest.json"
    return int(json.loads(latest.read_text())["file"][5:13]) if latest.exists() else -1  # step_00000012.safetensors


SWEEPING = """
import json, sys
from bindscope.runs.config import config_from_mapping
from bindscope.runs.sweep import train_sweep

if __name__ == "__main__":
    list(train_sweep([config_from_mapping(json.loads(sys.argv[1]))], sys.argv[2]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_workers_of_a_sweep_end_with_it(config, tmp_path, number):
    """A worker holds the lock of the run it trains until it ends, which training itself would not do for hours."""
    endless = override(config, {"training.steps": 10**7, "training.checkpoints.every": 10**6, "name": "endless"})
    (tmp_path / "sweep.py").write_text(SWEEPING)
    command = [sys.executable, tmp_path / "sweep.py", json.dumps(config_to_mapping(endless)), tmp_path / "runs"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    sweep = subprocess.Popen(command, env=environment, process_group=0)
    try:
        while not is_locked(tmp_path / "runs" / "endless"):
            assert sweep.poll() is None
            time.sleep(0.05)
        sweep.send_signal(number)
        sweep.wait()
        with FileLock(tmp_path / "runs" / "endless" / LOCK_FILE, timeout=600):
            assert Run.open(tmp_path / "runs" / "endless").status == "training"  # we hold the lock: no one else does
    finally:
        with suppress(ProcessLookupError):
            os.killpg(sweep.pid, signal.SIGKILL)
