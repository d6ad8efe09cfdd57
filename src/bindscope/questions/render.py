"""Questions as commands and as Python, made of a table: ``frontend/src/api/render.ts`` does the same with the same table.

>>> row = QuestionRow(command="predict", opener="run", method="predict", fields=[…])
>>> to_command(row, {"run": "binding-laptop", "program": "a=5;#a:", "steps": (0, 600)})
"bindscope predict binding-laptop 'a=5;#a:' --steps 0,600"
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, TypedDict

OPENED = {"run": "run = bindscope.open_run({})", "study": "study = bindscope.open_study({})"}
STUDY = "symbols"  # the study that is opened without a run


class FieldRow(TypedDict):
    """How one field is written."""

    name: str
    flag: str  # its option; empty where it is typed without one
    keyword: str
    positional: bool  # in Python
    joined: bool  # several values as one word, with commas
    shown: bool  # also where it is the default
    default: Any


class QuestionRow(TypedDict):
    """How a question is written."""

    command: str
    opener: str  # run or study
    method: str
    fields: list[FieldRow]


def to_command(row: QuestionRow, values: Mapping[str, Any]) -> str:
    """The command line; whatever is as usual is left out."""
    words = ["bindscope", row["command"]]
    given = list(_given(row, values))
    for field, value in given:
        if not field["flag"]:
            words += [shlex.quote(text_of(item)) for item in (value if isinstance(value, tuple) else (value,))]
    for field, value in given:
        if field["flag"]:
            words += _option(field, value)
    return " ".join(words)


def to_python(row: QuestionRow, values: Mapping[str, Any]) -> str:
    """The lines that open the run or the study and ask it."""
    arguments, keywords = [], []
    for field, value in _given(row, values):
        if field["name"] == "run":
            continue
        if field["positional"]:
            arguments += [literal_of(item) for item in (value if isinstance(value, tuple) else (value,))]
        else:
            keywords.append(f"{field['keyword']}={literal_of(value)}")
    opening = OPENED[row["opener"]].format(literal_of(values.get("run", STUDY)))
    call = f"{row['opener']}.{row['method']}({', '.join([*arguments, *keywords])})"
    return "\n".join(["import bindscope", "", opening, call])


def text_of(value: Any) -> str:
    """A value as it is typed: 3, 0.5, L2.H1.

    >>> text_of(3.0), text_of(0.00005), text_of(1e-7)
    ('3', '0.00005', '1e-7')
    """
    if not isinstance(value, float):
        return str(value)
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    exact = Decimal(repr(value))
    if 1e-6 <= abs(value) < 1e21:
        return format(exact, "f")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa.removesuffix('.0')}e{'-' if exponent[0] == '-' else '+'}{exponent.lstrip('+-0')}"


def literal_of(value: Any) -> str:
    """A value as Python writes it, with double quotes."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(literal_of, value))}]"
    if value is None or isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else text_of(value)


def _given(row: QuestionRow, values: Mapping[str, Any]) -> Iterator[tuple[FieldRow, Any]]:
    for field in row["fields"]:
        value = values.get(field["name"], field["default"])
        if value is not None and (field["shown"] or value != field["default"]):
            yield field, value


def _option(field: FieldRow, value: Any) -> list[str]:
    flag = field["flag"]
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag.removeprefix('--')}"]
    texts = [text_of(item) for item in (value if isinstance(value, tuple) else (value,))]
    if field["joined"]:
        texts = [",".join(texts)]
    return [f"{flag}{'=' if text.startswith('-') or ',-' in text else ' '}{shlex.quote(text)}" for text in texts]
