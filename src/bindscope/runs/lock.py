"""One process trains a run at a time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bindscope.errors import BindscopeError
from bindscope.runs.files import explain_failure

LOCK_FILE = ".lock"
N_ATTEMPTS = 5  # a reader that asks whether the run is being trained holds the lock for an instant


@contextmanager
def hold_lock(directory: Path) -> Iterator[None]:
    """Keep others from training this run; the system releases it when the process ends, however it ends.

    >>> with hold_lock(run.path):
    ...     train(...)
    """
    path = directory / LOCK_FILE
    with explain_failure(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if not any(_try_lock(handle, attempt) for attempt in range(N_ATTEMPTS)):
            raise BindscopeError(f"{directory}: another process is training this run; wait for it or end it.")
        yield
    finally:
        os.close(handle)


def is_locked(directory: Path) -> bool:
    """Whether a process is training this run now."""
    try:
        handle = os.open(directory / LOCK_FILE, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: those who ask at once do not see each other
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _try_lock(handle: int, attempt: int) -> bool:
    time.sleep(0.02 * attempt)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
