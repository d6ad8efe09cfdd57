"""Commands that are told to end, killed, or no longer read: their workers end with them, and what they trained goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import pytest
from filelock import FileLock

from bindscope.cli.failure import LAST_RESORT, guard, heed_termination
from bindscope.cli.main import run as run_command
from bindscope.errors import BindscopeError
from bindscope.runs.check import check_run
from bindscope.runs.directory import Run
from bindscope.runs.lock import LOCK_FILE, is_locked
from cli.small_run import small_options
from interrupts import heed_interrupts

ENDLESS = ["--steps", "1000000"]
TRAIN = ["train", "binding-tiny", *ENDLESS, "--threads", "1", *small_options(), "--out", "."]


@contextmanager
def started(arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command at work in a folder; whatever of it is left at the end is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bindscope", *arguments], cwd=folder, text=True, process_group=0,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=heed_interrupts,
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_until_locked(folder: Path, process: subprocess.Popen[str]) -> Path:
    """The run that the command trains, once it does."""
    while True:
        assert process.poll() is None
        for manifest in folder.rglob("manifest.json"):
            if is_locked(manifest.parent):
                return manifest.parent
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_workers_of_an_experiment_end_with_it(tmp_path: Path, number: signal.Signals) -> None:
    """The signal reaches the command alone, as from a scheduler, and not its workers."""
    with started(["experiment", "loss", "--jobs", "2", *ENDLESS, "--out", "."], tmp_path) as process:
        trained = wait_until_locked(tmp_path, process)
        process.send_signal(number)
        code = process.wait()
        with FileLock(trained / LOCK_FILE, timeout=600):
            assert not check_run(trained).damaged
        if number != signal.SIGKILL:
            assert code == 128 + number
            assert process.stderr is not None
            assert process.stderr.read() == "bindscope: interrupted; nothing further was written.\n"


def test_what_trains_in_a_demo_ends_when_the_demo_is_killed(tmp_path: Path) -> None:
    arguments = ["demo", "--no-open", "--out", str(tmp_path / "runs")]
    with started(arguments, tmp_path) as process:
        trained = wait_until_locked(tmp_path, process)
        process.kill()
        process.wait()
        with FileLock(trained / LOCK_FILE, timeout=600):
            assert Run.open(trained).status == "training"  # we hold the lock: no one else does


def test_training_that_is_told_to_end_says_how_to_go_on(tmp_path: Path) -> None:
    with started(TRAIN, tmp_path) as process:
        assert process.stdout is not None
        next(line for line in process.stdout if line.startswith("step 8/"))
        process.terminate()
        _, errors = process.communicate()
    assert process.returncode == 143
    assert errors == "bindscope: stopped; go on with 'bindscope resume binding-tiny'.\n"
    assert not [path for path in tmp_path.rglob(".writing-*")]


def test_training_that_nobody_reads_stops_and_says_how_to_go_on(tmp_path: Path) -> None:
    with started(TRAIN, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("binding-tiny: ")
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == "bindscope: stopped; go on with 'bindscope resume binding-tiny'.\n"
        assert process.wait() == 141
    assert Run.open(tmp_path / "binding-tiny").status == "interrupted"
    assert not check_run(tmp_path / "binding-tiny").damaged


def test_a_run_that_is_being_trained_is_not_resumed_by_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with started(TRAIN, tmp_path) as process:
        trained = wait_until_locked(tmp_path, process)
        assert run_command(["resume", str(trained)]) == 2
    sentence = f"bindscope: {trained}: another process is training this run; wait for it or end it.\n"
    assert capsys.readouterr().err == sentence


@pytest.fixture
def heeded() -> Iterator[None]:
    """This process heeds being told to end."""
    before = signal.getsignal(signal.SIGTERM)
    heed_termination()
    yield
    signal.signal(signal.SIGTERM, before)
    for thread in threading.enumerate():
        if thread.name == LAST_RESORT:
            cast(threading.Timer, thread).cancel()


def test_being_told_to_end_is_no_damaged_file(heeded: None) -> None:
    """torch's readers turn what a signal raises into an error of theirs, and ours then called the file damaged."""

    def read() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        except KeyboardInterrupt:
            raise BindscopeError("this file is damaged") from None

    assert guard(read) == 143


def test_being_told_to_end_is_heard_while_an_object_is_deleted(heeded: None) -> None:
    """Python ignores what is raised there."""

    class Deleted:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    def delete() -> None:
        Deleted()
        time.sleep(60)

    assert guard(delete) == 143


def test_a_command_without_an_output_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert run_command(["claims"]) == 0
