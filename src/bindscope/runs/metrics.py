"""``metrics.jsonl``: one JSON object per evaluation, in the order of the steps."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bindscope.errors import BindscopeError
from bindscope.runs.files import append_line, read_bytes, write_atomically


def append_metrics(path: Path, record: Mapping[str, Any]) -> None:
    """Add one evaluation.

    >>> append_metrics(path, {"step": 100, "loss": 2.1, "test": {"accuracy": 0.31}})
    """
    append_line(path, _to_line(record))


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All evaluations. A last line that a kill left half-written is passed over; any other damage is named."""
    if not path.exists():
        return []
    lines = read_bytes(path, "the record of evaluations").split(b"\n")
    complete, torn = lines[:-1], lines[-1]
    records = [_parse_line(path, number, line) for number, line in enumerate(complete, start=1)]
    return records if not torn else [*records, *_parse_torn(torn)]


def truncate_metrics(path: Path, last_step: int) -> None:
    """Forget the evaluations after ``last_step``, which a resumed run will make again."""
    kept = [record for record in read_metrics(path) if record["step"] <= last_step]
    content = "".join(_to_line(record) + "\n" for record in kept).encode()
    if not path.exists() or path.read_bytes() != content:
        write_atomically(path, content)


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
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("step"), int):
        raise BindscopeError(f"{path}, line {number}: not the record of an evaluation.")
    return record


def _parse_torn(line: bytes) -> list[dict[str, Any]]:
    """The last line has no end of line: whole all the same when it parses, else it is what a kill left of it."""
    try:
        record = json.loads(line)
    except ValueError:
        return []
    return [record] if isinstance(record, dict) and isinstance(record.get("step"), int) else []
