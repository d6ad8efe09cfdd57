"""Reading and writing files so that a kill, a full disk or a damaged byte never passes unnoticed.

A file is written beside its path under a temporary name, forced to disk and renamed: at every moment its path holds
the whole old content or the whole new one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bindscope.errors import BindscopeError

TEMPORARY = ".writing-"  # how the name of a file begins until it is complete
SEAL = b"\nsha256 of all before this line: "  # and 64 digits, at the end of a file that carries its own hash


def write_atomically(path: Path, content: bytes) -> str:
    """Put ``content`` at ``path``, all of it or nothing; returns its SHA-256.

    >>> write_atomically(Path("run/manifest.json"), b"{}")
    '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
    """
    with explain_failure(path):
        temporary = path.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
        try:
            with open(temporary, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync_directory(path.parent)
    return hashlib.sha256(content).hexdigest()


def append_line(path: Path, line: str) -> None:
    """Add one line and force it to disk; when that fails the file is left as it was."""
    with explain_failure(path), open(path, "ab") as file:
        before = file.tell()
        try:
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                os.ftruncate(file.fileno(), before)
            raise


def read_bytes(path: Path, what: str) -> bytes:
    """The content of a file that must be there; ``what`` names it to a person."""
    if path.exists() and not path.is_file():  # a pipe or a device would never end
        raise BindscopeError(f"{path}: {what} cannot be read: it is not a plain file.")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BindscopeError(f"{path}: {what} is missing.") from None
    except OSError as problem:
        raise BindscopeError(f"{path}: {what} cannot be read: {problem.strerror}.") from None


def read_json(path: Path, what: str) -> Any:
    content = read_bytes(path, what)
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise BindscopeError(f"{path}: {what} is damaged: it is not valid JSON.") from None


def read_verified(path: Path, sha256: str, what: str) -> bytes:
    """The content of a file whose hash was recorded when it was written; any other content is refused."""
    content = read_bytes(path, what)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise BindscopeError(f"{path}: {what} is damaged: its content is not what was recorded when it was written.")
    return content


def seal(content: bytes) -> bytes:
    """The content with its own hash behind it, for formats whose readers stop at their end, as netCDF's do."""
    return content + SEAL + hashlib.sha256(content).hexdigest().encode()


def is_sealed(content: bytes) -> bool:
    """Whether the content carries its own hash; what earlier versions wrote does not."""
    return content[-len(SEAL) - 64 : -64] == SEAL


def check_seal(content: bytes, path: Path, what: str) -> None:
    """Refuse a content that carries the hash of another one."""
    if is_sealed(content) and content != seal(content[: -len(SEAL) - 64]):
        raise BindscopeError(f"{path}: {what} is damaged: its content is not what was recorded when it was written.")


def hash_json(content: Any) -> str:
    """The SHA-256 of plain values, whatever the order of keys and the spaces they are written with."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def remove_unfinished(directory: Path) -> None:
    """Delete what a killed process was still writing."""
    for path in directory.glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            path.unlink()


def sync_directory(directory: Path) -> None:
    """Force a rename to disk. Some file systems cannot; the rename itself is atomic there all the same."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def explain_failure(path: Path) -> Iterator[None]:
    """Turn a failure of the file system into one sentence about ``path``."""
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise BindscopeError(
                f"{path}: no space left to write it; what was there before is unchanged, so make room and go on."
            ) from None
        raise BindscopeError(f"{path}: cannot be written: {problem.strerror or problem}.") from None
