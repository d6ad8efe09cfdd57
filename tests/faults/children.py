"""Commands in processes that start with everything imported, so that hundreds of them can be killed in minutes.

The first process imports all of Bindscope and computes nothing; each command is a fork of it with its own group of processes.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pkgutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bindscope

ALSO = ("torch._dynamo", "matplotlib.pyplot", "uvicorn", "h5netcdf", "transformers")
PATIENCE = 90.0  # seconds that the workers of a command that was killed have to notice


def import_everything() -> None:
    """All modules, those that are imported late too."""
    found = pkgutil.walk_packages(bindscope.__path__, "bindscope.")
    names = [module.name for module in found if not module.name.endswith("__main__")]
    for name in (*ALSO, *names):
        importlib.import_module(name)
    forking = multiprocessing.get_context("fork")
    multiprocessing.get_context = lambda method=None: forking  # type: ignore[assignment,return-value]


@dataclass
class Child:
    """A command at work, head of its own group."""

    pid: int
    said: Path  # what it printed, errors too
    code: int | None = None

    def poll(self) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def wait(self, seconds: float = 600.0) -> int:
        """Its exit code; one that does not end in time is killed, and its code says so."""
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                os.killpg(self.pid, signal.SIGKILL)
            time.sleep(0.002)
        return code

    def send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def workers_end(self) -> bool:
        """Whether every process of its group ends by itself; what does not is killed."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if not _group_lives(self.pid):
                return True
            time.sleep(0.005)
        os.killpg(self.pid, signal.SIGKILL)
        return False


def start(arguments: list[str], folder: Path, before: Callable[[], None] = lambda: None) -> Child:
    """``bindscope ARGUMENTS`` in ``folder``; ``before`` is called in its process first."""
    said = folder.parent / f"{folder.name}.said"
    said.write_text("")
    pid = os.fork()
    if pid:
        return Child(pid, said)
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        handle = os.open(said, os.O_WRONLY | os.O_APPEND)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        before()
        from bindscope.cli.main import main

        main(arguments)
    except SystemExit as left:
        sys.stdout.flush()
        os._exit(left.code if isinstance(left.code, int) else 0)
    except BaseException:
        traceback.print_exc()
        os._exit(99)
    os._exit(98)


def _group_lives(group: int) -> bool:
    """Whether a process of the group is at work; those that ended and were not fetched yet do not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue
        if int(its_group) == group and state not in "ZX":
            return True
    return False
