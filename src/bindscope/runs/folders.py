"""Directories that appear whole: filled under a hidden name beside their folder, then renamed.

A process that is killed meanwhile leaves its hidden directory behind. Whoever fills one holds a lock beside it, which the
system releases with the process; so whoever writes there next sees which ones are nobody's any more, and removes them.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bindscope.errors import BindscopeError
from bindscope.runs.files import TEMPORARY, explain_failure, sync_directory
from bindscope.runs.lock import hold_file, is_held

JUST_MADE = 60  # seconds in which a hidden directory is left alone: its lock may be on its way
WITHOUT_LOCK = 24 * 3600  # … and one that never had a lock, as earlier versions made them


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """A hidden directory to fill, which becomes ``path`` when the block ends well and disappears when it does not.

    >>> with new_directory(Path("runs/first")) as unfinished:
    ...     write_atomically(unfinished / "manifest.json", b"{}")
    """
    _refuse_to_overwrite(path)
    with hidden_folder(path) as unfinished:
        with explain_failure(path):
            unfinished.mkdir()
        yield unfinished
        _refuse_to_overwrite(path)
        with explain_failure(path):
            sync_directory(unfinished)
            os.rename(unfinished, path)
            sync_directory(path.parent)


@contextmanager
def hidden_folder(path: Path) -> Iterator[Path]:
    """Where a directory may lie, beside ``path``, until the block ends: nobody else removes it; then it is removed."""
    with explain_failure(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path.parent)
    hidden = path.parent / f"{TEMPORARY}{path.name[:80]}-{uuid.uuid4().hex[:8]}"
    try:
        with ExitStack() as held:
            with explain_failure(path):
                held.enter_context(hold_file(_lock_of(hidden)))
            try:
                yield hidden
            finally:
                shutil.rmtree(hidden, ignore_errors=True)
    finally:
        with suppress(OSError):
            _lock_of(hidden).unlink()


def remove_abandoned(directory: Path) -> None:
    """Delete the hidden directories in here that a killed process was filling."""
    for lock in directory.glob(f"{TEMPORARY}*{_LOCK}"):
        if _age(lock) > JUST_MADE and not is_held(lock):
            shutil.rmtree(lock.with_name(lock.name.removesuffix(_LOCK)), ignore_errors=True)
            with suppress(OSError):
                lock.unlink()
    for hidden in directory.glob(f"{TEMPORARY}*"):
        if hidden.is_dir() and not _lock_of(hidden).exists() and _age(hidden) > WITHOUT_LOCK:
            shutil.rmtree(hidden, ignore_errors=True)


_LOCK = ".lock"


def _lock_of(hidden: Path) -> Path:
    return hidden.with_name(hidden.name + _LOCK)


def _age(path: Path) -> float:
    """How many seconds ago it was last changed; 0 where it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0


def _refuse_to_overwrite(path: Path) -> None:
    if path.is_dir() and not any(path.iterdir()):
        return
    if path.exists():
        raise BindscopeError(f"{path}: exists already and is not overwritten; choose another name, or resume it.")
