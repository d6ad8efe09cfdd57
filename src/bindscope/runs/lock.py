"""Locks that the system releases with the process that holds them: one process trains a run at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bindscope.errors import BindscopeError
from bindscope.runs.files import explain_failure

LOCK_FILE = ".lock"
PATIENCE = 0.2  # seconds: a reader that asks whether a lock is held may hold it for an instant


@contextmanager
def hold_lock(directory: Path) -> Iterator[None]:
    """Keep others from training this run; the system releases it when the process ends, however it ends.

    >>> with hold_lock(run.path):
    ...     train(...)
    """
    path = directory / LOCK_FILE
    with ExitStack() as held:
        with explain_failure(path):
            if not held.enter_context(hold_file(path)):
                raise BindscopeError(f"{directory}: another process is training this run; wait for it or end it.")
        yield


def is_locked(directory: Path) -> bool:
    """Whether a process is training this run now."""
    return is_held(directory / LOCK_FILE)


@contextmanager
def hold_file(path: Path) -> Iterator[bool]:
    """Hold the lock that this file stands for, which is made where it is missing; false where another has it."""
    from filelock import FileLock, Timeout  # not at the top: reading runs needs none of it

    lock = FileLock(path, timeout=PATIENCE, poll_interval=PATIENCE / 10)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


if sys.platform == "win32":

    def is_held(path: Path) -> bool:
        """Whether a process holds the lock that this file stands for."""
        if not path.exists():
            return False
        with hold_file(path) as free:
            return not free

else:

    def is_held(path: Path) -> bool:
        """Whether a process holds the lock that this file stands for."""
        import fcntl

        try:
            handle = os.open(path, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: those who ask at once do not see each other
        except OSError:  # held; or a file system without such locks, where the file is there while it is held
            return True
        finally:
            os.close(handle)
        return False
