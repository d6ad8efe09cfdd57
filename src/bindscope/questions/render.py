"""Questions as commands and as Python, made of a table: ``frontend/src/api/render.ts`` does the same with the same table.

>>> row = QuestionRow(command="predict", opener="run", method="predict", fields=[…])
>>> to_command(row, {"run": "binding-laptop", "program": "a=5;#a:", "steps": (0, 600)})
"bindscope predict binding-laptop 'a=5;#a:' --steps 0,600"
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, TypedDict

from bindscope.runs.placement import CPU, Placement

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


def to_command(row: QuestionRow, values: Mapping[str, Any], family: str = "") -> str:
    """The command line; whatever is as usual is left out. ``family`` is where one of a person's own is."""
    given = list(_given(row, values))
    words = [item for field, value in given if not field["flag"] for item in _items(value)]
    options = [
        word for field, value in given if field["flag"] for word in _option(field["flag"], value, field["joined"])
    ]
    return _join(row["command"], words, options, family)


def write_command(command: str, *words: Any, family: str = "", **options: Any) -> str:
    """A command that no question stands behind, by the same rules.

    >>> write_command("behaviour", "binding-laptop", by="root-line", step=600, keep=True)
    'bindscope behaviour binding-laptop --by root-line --step 600 --keep'
    """
    given = {f"--{name.replace('_', '-')}": value for name, value in options.items() if value is not None}
    written = [word for flag, value in given.items() for word in _option(flag, value)]
    return _join(command, words, written, family)


def to_python(row: QuestionRow, values: Mapping[str, Any], family: str = "", placement: Placement = CPU) -> str:
    """The lines that open the run or the study and ask it."""
    arguments, keywords = [], []
    for field, value in _given(row, values):
        if field["name"] == "run":
            continue
        if field["positional"]:
            arguments += [literal_of(item) for item in _items(value)]
        else:
            keywords.append(f"{field['keyword']}={literal_of(value)}")
    call = f"{row['opener']}.{row['method']}({', '.join([*arguments, *keywords])})"
    return write_python(call, opener=row["opener"], name=values.get("run", STUDY), family=family, placement=placement)


def write_python(
    call: str, *imports: str, opener: str = "run", name: str = STUDY, family: str = "", placement: Placement = CPU
) -> str:
    """The lines that open a run, or the study, and ask it what ``call`` says.

    >>> print(write_python('run.result("lens")', name="binding-laptop"))
    import bindscope
    <BLANKLINE>
    run = bindscope.open_run("binding-laptop")
    run.result("lens")
    """
    opened = literal_of(name) + (f", family={literal_of(family)}" if family else "")
    options = zip(placement.options[::2], placement.options[1::2])
    opened += "".join(f", {option.removeprefix('--')}={literal_of(value)}" for option, value in options)
    return "\n".join(["import bindscope", *imports, "", OPENED[opener].format(opened), call])


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


def _join(command: str, words: Iterable[Any], options: Iterable[str], family: str) -> str:
    own = [f"--family {shlex.quote(family)}"] if family else []
    return " ".join(["bindscope", command, *(shlex.quote(text_of(word)) for word in words), *options, *own])


def _items(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _option(flag: str, value: Any, joined: bool = False) -> list[str]:
    if isinstance(value, bool):
        return [flag if value else f"--no-{flag.removeprefix('--')}"]
    texts = [text_of(item) for item in _items(value)]
    if joined:
        texts = [",".join(texts)]
    return [f"{flag}{'=' if text.startswith('-') or ',-' in text else ' '}{shlex.quote(text)}" for text in texts]
