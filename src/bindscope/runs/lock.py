"""One process trains a run at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bindscope.errors import BindscopeError
from bindscope.runs.files import explain_failure

LOCK_FILE = ".lock"


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
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BindscopeError(f"{directory}: another process is training this run; wait for it or end it.") from None
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
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
