"""``metrics.jsonl``: one JSON object per evaluation, in the order of the steps.

The manifest records how many lines there are and their hash, after each line that is added: a line behind these is one that a kill
left before it was recorded, and is passed over.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bindscope.errors import BindscopeError
from bindscope.runs.files import append_line, read_bytes, write_atomically
from bindscope.runs.manifest import Recorded


def append_metrics(path: Path, record: Mapping[str, Any], recorded: Recorded | None) -> Recorded:
    """Add one evaluation behind those that are recorded; what the manifest should record now.

    >>> recorded = append_metrics(path, {"step": 100, "loss": 2.1, "test": {"accuracy": 0.31}}, recorded)
    """
    before = _recorded_lines(path, recorded)
    content = b"".join(before)
    line = _to_line(record)
    if path.exists() and path.stat().st_size > len(content):  # what a kill left behind them
        write_atomically(path, content)
    append_line(path, line)
    return _record(content + line.encode() + b"\n")


def read_metrics(path: Path, recorded: Recorded | None = None) -> list[dict[str, Any]]:
    """All evaluations that are recorded; any damage to them is named.

    A run of an earlier format records nothing: there a last line that a kill left half-written is passed over.
    """
    return [_parse_line(path, number, line) for number, line in enumerate(_recorded_lines(path, recorded), start=1)]


def record_metrics(path: Path, last_step: int, recorded: Recorded | None) -> Recorded:
    """What the manifest should record of the evaluations up to ``last_step``."""
    lines = [line for line in _recorded_lines(path, recorded) if line.endswith(b"\n")]
    kept = [line for number, line in enumerate(lines, start=1) if _parse_line(path, number, line)["step"] <= last_step]
    return _record(b"".join(kept))


def truncate_metrics(path: Path, recorded: Recorded) -> None:
    """Forget the lines behind those that are recorded."""
    content = b"".join(_recorded_lines(path, recorded))
    if not path.exists() or path.read_bytes() != content:
        write_atomically(path, content)


def _record(content: bytes) -> Recorded:
    return Recorded(content.count(b"\n"), hashlib.sha256(content).hexdigest())


def _recorded_lines(path: Path, recorded: Recorded | None) -> list[bytes]:
    """The lines that are recorded, as they are; refused where they are not what was recorded."""
    if recorded is None and not path.exists():
        return []
    if recorded is not None and recorded.n_lines == 0:
        return []
    *lines, torn = read_bytes(path, "the record of evaluations").split(b"\n")
    if recorded is None:
        return [line + b"\n" for line in lines] + ([torn] if _is_record(torn) else [])
    kept = [line + b"\n" for line in lines[: recorded.n_lines]]
    if len(kept) < recorded.n_lines:
        raise BindscopeError(
            f"{path}: the record of evaluations is damaged: {len(kept)} of {recorded.n_lines} evaluations are left; put back a copy "
            "of the file."
        )
    if _record(b"".join(kept)) != recorded:
        raise BindscopeError(
            f"{path}: the record of evaluations is damaged: its content is not what was recorded when it was written; put back "
            "a copy of the file."
        )
    return kept


def _to_line(record: Mapping[str, Any]) -> str:
    return json.dumps(_without_nan(record), allow_nan=False, separators=(",", ":"))


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: a number that is none becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _parse_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    if not _is_record(line):
        raise BindscopeError(f"{path}, line {number}: not the record of an evaluation.")
    record: dict[str, Any] = json.loads(line)
    return record


def _is_record(line: bytes) -> bool:
    """Whether a line is the whole record of an evaluation, and not what a kill left of one."""
    try:
        record = json.loads(line)
    except ValueError:
        return False
    return isinstance(record, dict) and isinstance(record.get("step"), int)
