"""A run's evaluations for other tools: CSV, TensorBoard's event files, Weights & Biases. None of them is needed here.

An event file is a sequence of records: the length (8 bytes), its checksum, the content, its checksum, each checksum a
CRC-32C with its bits turned and a constant added. The content is a protocol buffer ``Event`` with a time, a step, and
named numbers (``Summary.Value``), or in the first record a version.

>>> write_tensorboard(run, Path("logs/mine"))
PosixPath('logs/mine/events.out.tfevents.0.bindscope')
"""

from __future__ import annotations

import csv
import io
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bindscope.errors import BindscopeError, NotYet
from bindscope.runs.directory import Run
from bindscope.runs.files import explain_failure, write_atomically

Numbers = dict[str, float]  # by name, parts joined by /
CASTAGNOLI = 0x82F63B78
VERSION = b"brain.Event:2"
EVENTS = "events.out.tfevents.0.bindscope"  # TensorBoard finds a file by the first three words


def read_numbers(run: Run) -> list[tuple[int, Numbers]]:
    """Every number of every evaluation, by step.

    >>> read_numbers(run)[0][1]["test/accuracy_by_depth/0"]
    """
    found = [(int(record["step"]), dict(_flatten(record))) for record in run.metrics]
    if not found:
        raise NotYet(f"{run.path}: no evaluation was recorded yet; there is nothing to export.")
    return found


def write_csv(run: Run, path: Path) -> Path:
    """One row for each evaluation, one column for each number; what was not recorded at a step is empty."""
    rows = read_numbers(run)
    names = list(dict.fromkeys(name for _, numbers in rows for name in numbers))
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["step", *names])
    writer.writerows([step, *(numbers.get(name, "") for name in names)] for step, numbers in rows)
    return _write(path, text.getvalue().encode())


def write_tensorboard(run: Run, directory: Path) -> Path:
    """An event file in a directory, for ``tensorboard --logdir``; times are seconds of training."""
    events = [_field(3, VERSION)]
    for step, numbers in read_numbers(run):
        values = b"".join(_field(1, _field(1, name.encode()) + b"\x15" + struct.pack("<f", value))
                          for name, value in numbers.items())  # fmt: skip
        events.append(b"\x10" + _varint(step) + _field(5, values))
    times = [0.0, *(float(record.get("elapsed") or 0) for record in run.metrics)]
    content = [_record(b"\x09" + struct.pack("<d", time) + event) for time, event in zip(times, events)]
    return _write(directory / EVENTS, b"".join(content))


def log_to_wandb(run: Run, directory: Path) -> Path:
    """The evaluations as a Weights & Biases run on this disk; ``wandb sync`` uploads it, nothing else does."""
    rows = read_numbers(run)
    try:
        import wandb
    except ImportError:
        raise BindscopeError(
            "wandb is not installed; 'pip install wandb' and try again, or export to csv or tensorboard instead."
        ) from None
    with explain_failure(directory):
        directory.mkdir(parents=True, exist_ok=True)
    config = dict(run.manifest.config)
    logged = wandb.init(mode="offline", dir=str(directory), project="bindscope", name=run.name, config=config)
    for step, numbers in rows:
        logged.log(numbers, step=step)
    logged.finish()
    return directory


def _flatten(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number inside, by the way to it; truth values, words and what is missing are left out."""
    if isinstance(value, Mapping):
        parts: Any = [(key, each) for key, each in value.items() if name or key != "step"]
    elif isinstance(value, list):
        parts = list(enumerate(value))
    else:
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, float(value)
        return
    for key, each in parts:
        yield from _flatten(each, f"{name}/{key}" if name else str(key))


def _record(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return b"".join((length, _checksum(length), content, _checksum(content)))


def _checksum(content: bytes) -> bytes:
    crc = crc32c(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def crc32c(content: bytes) -> int:
    """The Castagnoli checksum.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _make_table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (CASTAGNOLI if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _make_table()


def _field(number: int, content: bytes) -> bytes:
    """A field of a protocol buffer that holds bytes."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """A whole number in groups of seven bits, the lowest first; the eighth bit says that more follow."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def _write(path: Path, content: bytes) -> Path:
    with explain_failure(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)
    return path
