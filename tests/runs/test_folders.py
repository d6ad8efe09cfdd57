"""Directories appear whole, and what a killed process leaves behind is removed by the next one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bindscope.errors import BindscopeError
from bindscope.runs.files import TEMPORARY, write_atomically
from bindscope.runs.folders import JUST_MADE, WITHOUT_LOCK, new_directory

FILLING = """
import sys, time
from pathlib import Path
from bindscope.runs.folders import new_directory
with new_directory(Path(sys.argv[1])) as unfinished:
    (unfinished / "half").write_text("half")
    print(unfinished, flush=True)
    time.sleep(600)
"""


@contextmanager
def filling(path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process in the middle of filling a directory, and where it does so."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", FILLING, str(path)], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
    finally:
        process.kill()
        process.communicate()


def grow_old(directory: Path, seconds: float) -> None:
    """As if everything hidden in here had been made so long ago."""
    moment = time.time() - seconds
    for path in directory.glob(f"{TEMPORARY}*"):
        os.utime(path, (moment, moment))


def hidden_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name.startswith(".")]


def test_a_directory_appears_complete_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "run"
    with pytest.raises(BindscopeError), new_directory(path) as unfinished:
        write_atomically(unfinished / "missing" / "file", b"half")
    assert list(path.parent.iterdir()) == []
    with new_directory(path) as unfinished:
        (unfinished / "file").write_text("whole")
        assert not path.exists()
    assert (path / "file").read_text() == "whole"


def test_what_exists_is_not_overwritten_but_an_empty_directory_may_be_filled(tmp_path):
    with new_directory(tmp_path / "run") as unfinished:
        (unfinished / "file").write_text("mine")
    for path in (tmp_path / "run", tmp_path / "run" / "file"):
        with pytest.raises(BindscopeError, match="exists already and is not overwritten"), new_directory(path):
            pass
    (tmp_path / "empty").mkdir()
    with new_directory(tmp_path / "empty") as unfinished:
        (unfinished / "file").write_text("mine")
    assert (tmp_path / "empty" / "file").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "run"]


def test_what_a_killed_process_was_filling_is_removed_by_the_next(tmp_path):
    with filling(tmp_path / "site") as (process, unfinished):
        assert (unfinished / "half").exists()
        process.kill()
        process.wait()
    assert len(hidden_in(tmp_path)) == 2  # the directory and its lock
    grow_old(tmp_path, 2 * JUST_MADE)
    with new_directory(tmp_path / "other"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_what_a_living_process_is_filling_is_left_alone_however_long_it_takes(tmp_path):
    with filling(tmp_path / "site") as (_, unfinished):
        grow_old(tmp_path, 2 * WITHOUT_LOCK)
        with new_directory(tmp_path / "other"):
            pass
        assert (unfinished / "half").exists()
        assert len(hidden_in(tmp_path)) == 2


def test_a_hidden_directory_without_a_lock_is_removed_after_a_day(tmp_path):
    for seconds, left in ((2 * JUST_MADE, 1), (2 * WITHOUT_LOCK, 0)):
        (tmp_path / f"{TEMPORARY}site-0" / "deep").mkdir(parents=True, exist_ok=True)
        grow_old(tmp_path, seconds)
        with new_directory(tmp_path / f"other-{left}"):
            pass
        assert len(hidden_in(tmp_path)) == left


def test_nothing_hidden_stays_where_nothing_was_killed(tmp_path):
    with new_directory(tmp_path / "first"):
        assert len(hidden_in(tmp_path)) == 2
    assert hidden_in(tmp_path) == []
    with pytest.raises(KeyboardInterrupt), new_directory(tmp_path / "second"):
        raise KeyboardInterrupt
    assert hidden_in(tmp_path) == []
