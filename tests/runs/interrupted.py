"""What the processes of test_kill.py do: train or resume a run, and die in the middle of what they are told to."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bindscope.runs.config import RunConfig
from bindscope.runs.execute import resume_run, train_run

DISK_OPERATIONS = ("fsync", "replace", "rename", "unlink")


def train_or_resume(config: RunConfig, path: Path, die_at: int | None = None) -> None:
    """With ``die_at`` the process kills itself at its n-th operation on the disk."""
    if die_at is not None:
        _die_at_disk_operation(die_at)
    if path.exists():
        resume_run(path)
    else:
        train_run(config, path, device="cpu", threads=1)


def _die_at_disk_operation(number: int) -> None:
    count = 0

    def watch(operation: str, original: Callable) -> Callable:
        def watched(*arguments, **options):
            nonlocal count
            count += 1
            if count == number:
                if operation == "fsync":
                    _tear(arguments[0])
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **options)

        return watched

    for operation in DISK_OPERATIONS:
        setattr(os, operation, watch(operation, getattr(os, operation)))


def _tear(handle: int) -> None:
    """Leave the file as if the kill had come while its last bytes were still to be written."""
    with suppress(OSError):
        os.ftruncate(handle, max(0, os.fstat(handle).st_size - 7))
