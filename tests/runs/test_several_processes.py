"""One run over several processes: one of them is lost and comes back, or all of them refuse with one voice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bindscope.errors import BindscopeError
from bindscope.runs.directory import Run
from bindscope.runs.execute import resume_run
from bindscope.runs.lock import hold_lock
from torchrun import environment, run_by_torchrun, start_torchrun

LOST_PROCESS = Path(__file__).with_name("lost_process.py")
FLASH = {
    "training.steps": 12, "training.save_every": 3, "training.evaluate_every": 4, "training.evaluation_size": 32,
    "training.batch_size": 9, "model.dropout": 0.1, "model.n_layers": 2,
}  # fmt: skip


def options_of(settings) -> list[str]:
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


@pytest.fixture
def begun_by_two(half_done) -> Run:
    """An interrupted run that says that two processes began it."""
    half_done._update(machine={**half_done.manifest.machine, "processes": 2})
    return half_done


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("n", "rank"), [(2, 0), (4, 2)])
def test_a_process_that_is_lost_comes_back_and_the_run_ends_bit_for_bit_as_if_it_had_not_been(tmp_path, n, rank):
    """Lost before step 8, resumed from the state of step 6; nine rows a step, so that shards differ in size."""
    runs = tmp_path / "runs"
    output = run_by_torchrun(
        LOST_PROCESS,
        [str(rank), "7", "binding-tiny", *options_of(FLASH), "--device", "cpu", "--threads", "1", "--out", str(runs)],
        before=lambda: shutil.rmtree(runs, ignore_errors=True),
        n=n,
        restarts=1,
    )
    assert "exitcode: -9" in output
    whole, lost = (Run.open(runs / name) for name in ("whole", "lost"))
    assert lost.status == whole.status == "finished"
    assert lost.manifest.machine["processes"] == n
    assert [record["step"] for record in lost.metrics] == [0, 4, 8, 12]
    assert [record["loss"] for record in lost.metrics] == [record["loss"] for record in whole.metrics]
    assert {step: kept.sha256 for step, kept in lost.manifest.checkpoints.items()} == {
        step: kept.sha256 for step, kept in whole.manifest.checkpoints.items()
    }


@pytest.mark.timeout(600)
def test_what_several_processes_refuse_is_said_once_with_exit_code_2(begun_by_two):
    """They have connected, and the first one finds the run locked."""
    words = ["-m", "bindscope", "resume", str(begun_by_two.path), "--processes", "2"]
    with hold_lock(begun_by_two.path):
        done = subprocess.run([sys.executable, *words], env=environment(), capture_output=True, text=True, timeout=1000)
    assert (
        done.stderr == f"bindscope: {begun_by_two.path}: another process is training this run; wait for it or end it.\n"
    )
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_under_torchrun_the_sentence_is_said_once_and_ends_its_report(tmp_path):
    code, output = start_torchrun(["-m", "bindscope", "train", "binding-tiny", "--set", "training.btch=1"], restarts=1)
    sentence = "bindscope: unknown setting 'training.btch'. Did you mean 'training.batch_size'?"
    lines = output.splitlines()
    assert code != 0
    assert lines.count(sentence) == 1  # over two processes and two attempts
    assert "exitcode  : 2" in output
    assert [line for line in lines if line.strip("= ")][-1].strip() == f"traceback : {sentence}"


@pytest.mark.parametrize("n", [1, 3])
def test_a_run_of_another_world_size_is_refused_before_anything_is_connected(begun_by_two, monkeypatch, n):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", str(n))
    with pytest.raises(BindscopeError, match=rf"begun by 2 processes and {n} would go on.*--processes 2"):
        resume_run(begun_by_two.path)


def test_another_world_size_goes_on_when_it_is_allowed(begun_by_two):
    assert resume_run(begun_by_two.path, any_world_size=True).status == "finished"
