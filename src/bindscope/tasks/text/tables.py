"""Texts in the rows of tables: JSON lines, Parquet and Arrow, as datasets of Hugging Face are saved."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bindscope.errors import BindscopeError, name_nearest

TABLES = (".jsonl", ".parquet", ".arrow")
POINTER = b"version https://git-lfs"


def read_table(file: Path, column: str) -> list[str]:
    """The texts in a column. Rows that end with a line break, as those of WikiText do, are lines of one text.

    >>> read_table(Path("train.jsonl"), "text")
    ['The first text.', 'The second.']
    """
    try:
        with file.open("rb") as opened:
            start = opened.read(len(POINTER))
    except OSError as problem:
        raise BindscopeError(f"task.source: {file} cannot be read: {problem.strerror}.") from None
    if start == POINTER:
        raise BindscopeError(f"task.source: {file} only points to its content; fetch it with 'git lfs pull'.")
    rows = _read_json_lines(file, column) if file.suffix == ".jsonl" else _read_arrow(file, column)
    for number, row in enumerate(rows, start=1):
        if row is not None and not isinstance(row, str):
            raise BindscopeError(f"task.source: {file}, row {number}: '{column}' holds no text.")
    return _join_lines([row or "" for row in rows])


def _join_lines(rows: Sequence[str]) -> list[str]:
    if all(row.endswith("\n") for row in rows if row):
        return ["".join(rows)]
    return [row for row in rows if row]


def _read_json_lines(file: Path, column: str) -> list[Any]:
    rows = []
    for number, line in enumerate(file.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise BindscopeError(f"task.source: {file}, line {number}: not valid JSON.") from None
        if not isinstance(row, dict):
            raise BindscopeError(f"task.source: {file}, line {number}: not a table row.")
        _check_column(file, column, list(row))
        rows.append(row[column])
    return rows


def _read_arrow(file: Path, column: str) -> list[Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise BindscopeError(
            f"task.source: reading {file.name} needs pyarrow, which is not installed; install it with: pip install "
            "pyarrow"
        ) from None
    try:
        if file.suffix == ".parquet":
            table = pq.read_table(file)
        else:
            table = _open_arrow(pa, file)
    except (pa.ArrowException, OSError) as problem:
        raise BindscopeError(f"task.source: {file} is damaged: {problem}.") from None
    _check_column(file, column, table.column_names)
    return list(table.column(column).to_pylist())


def _open_arrow(pa: Any, file: Path) -> Any:
    """``save_to_disk`` writes a stream; other writers a file."""
    with pa.memory_map(str(file)) as mapped:
        try:
            return pa.ipc.open_stream(mapped).read_all()
        except pa.ArrowInvalid:
            mapped.seek(0)
            return pa.ipc.open_file(mapped).read_all()


def _check_column(file: Path, column: str, columns: Sequence[str]) -> None:
    if column not in columns:
        raise BindscopeError(
            f"task.column: {file} has no column '{column}', only {', '.join(columns)}.{name_nearest(column, columns)}"
        )
