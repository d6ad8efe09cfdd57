"""A question is data: fields with help and bounds, and the command and the Python that ask it again.

    @dataclass(frozen=True, kw_only=True)
    class Predict(RunQuestion):
        command_name, method = "predict", "predict"
        program: str = ask(help="The program, lines separated by ';'.", positional=True)
        steps: Steps = ask("last", help="Which checkpoints.", convert=to_steps)

The command line makes its options of these fields, the page its request, and both take help and bounds from them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from inspect import get_annotations
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from bindscope.errors import BindscopeError
from bindscope.questions.opened import Opened
from bindscope.questions.render import FieldRow, QuestionRow, to_command, to_python
from bindscope.runs.placement import CPU, Placement

MOST_SEED = 2**31 - 1


class BadValue(BindscopeError):
    """A field that cannot be as it was given; the command line names it by its option."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name, self.problem = name, problem


@dataclass(frozen=True)
class Ask:
    """What there is to know of a field besides its name, type and default."""

    help: str
    positional: bool = False  # passed without a keyword and, if it has no flag, typed without an option
    flag: str = ""  # its option; --name where this is empty
    keyword: str = ""  # its keyword in Python; its name where this is empty
    joined: bool = False  # several values are one word, with commas between
    shown: bool = False  # written down even as the default: command and notebook have defaults of their own
    convert: Callable[[Any], Any] | None = None  # from whatever a person gave
    settle: str = ""  # what was typed, as the task writes it: "program", "sum", "steps" or "templates"
    bounds: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # ge, le, min_length, max_length
    live: Mapping[str, Any] = dataclasses.field(
        default_factory=dict
    )  # what a server takes: narrower, ``type``, ``never``


def ask(default: Any = MISSING, *, help: str, **more: Any) -> Any:
    """A field of a question; ``ge``, ``le``, ``min_length`` and ``max_length`` bound it."""
    bounds: dict[str, Any] = {name: more.pop(name) for name in ("ge", "le", "min_length", "max_length") if name in more}
    return field(default=default, metadata={"ask": Ask(help, bounds=bounds, **more)})


def to_step(value: Any) -> Any:
    """``"600"`` as a number; 'first', 'last' and None as they are."""
    text = value.strip() if isinstance(value, str) else value
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else text


def to_steps(value: Any) -> Any:
    """One step, 'all', or several in order, each once: ``"1000, 0, last"`` is (0, 1000, 'last')."""
    if isinstance(value, str):
        words = sorted({to_step(word) for word in value.split(",")}, key=_order)
    else:
        words = [value] if isinstance(value, int) else list(dict.fromkeys(map(to_step, value)))
    if not words:
        raise BadValue("steps", "name at least one checkpoint.")
    return words[0] if len(words) == 1 else tuple(words)


def to_texts(value: Any) -> tuple[str, ...]:
    """One text alone, or several."""
    return (value,) if isinstance(value, str) else tuple(value)


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something to ask. A question that cannot be asked is refused when it is made."""

    command_name: ClassVar[str] = ""  # of the command that asks it
    method: ClassVar[str] = ""  # of the view that asks it in Python
    opener: ClassVar[str] = "study"  # what has the method: a run, or the study of symbols

    def __post_init__(self) -> None:
        choices = find_choices(type(self))
        for name, about in describe_fields(type(self)).items():
            if about.convert is not None and getattr(self, name) is not None:
                object.__setattr__(self, name, about.convert(getattr(self, name)))
            check_bounds(name, getattr(self, name), about.bounds)
            check_choice(name, getattr(self, name), choices.get(name, ()))
        self.check()

    def check(self) -> None:
        """Refuse fields that do not go together."""

    def command(self, family: str = "") -> str:
        """The command that asks this; ``family`` is where that of the run is, if it is a person's own."""
        return to_command(describe_question(type(self)), self.values(), family)

    def python(self, family: str = "", placement: Placement = CPU) -> str:
        """The lines of Python that ask this, with no import but bindscope."""
        return to_python(describe_question(type(self)), self.values(), family, placement)

    def values(self) -> dict[str, Any]:
        """The fields by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, kw_only=True)
class RunQuestion(Question):
    """A question about one run."""

    opener: ClassVar[str] = "run"
    runs_on: ClassVar[str] = ""  # which kind of run can be asked: programs, sums; empty: any

    run: str = ask(
        help="A path, a name under ./runs, or a shipped run's name.", positional=True, live={"max_length": 100}
    )

    def settled(self, opened: Opened) -> Self:
        """The same question as it is written down: programs on one line, 'all' for all steps; refused like its answer."""
        changes = {}
        for name, about in describe_fields(type(self)).items():
            value = getattr(self, name)
            if about.settle and value is not None:
                changes[name] = opened.settle(about.settle, value, self.runs_on)
        return replace(self, **changes)

    def saved_steps(self, opened: Opened) -> list[int]:
        """Every checkpoint whose weights the answer depends on."""
        found = []
        for name, about in describe_fields(type(self)).items():
            value = getattr(self, name)
            if about.convert in (to_step, to_steps) and value is not None:
                found += opened.find_steps(value)
        return found


def describe_fields(question: type[Question]) -> dict[str, Ask]:
    """What there is to know of each field, a question's own before those it shares with others."""
    return {each.name: each.metadata["ask"] for each in _ordered_fields(question)}


def describe_question(question: type[Question]) -> QuestionRow:
    """What ``to_command`` and ``to_python`` need of a question, here and in the browser."""
    rows = []
    for each in _ordered_fields(question):
        about, required = each.metadata["ask"], each.default is MISSING
        flag = about.flag or ("" if about.positional else f"--{each.name.replace('_', '-')}")
        row = FieldRow(
            name=each.name, flag=flag, keyword=about.keyword or each.name, positional=about.positional,
            joined=about.joined, shown=about.shown or required, default=None if required else each.default,
        )  # fmt: skip
        rows.append(row)
    return QuestionRow(command=question.command_name, opener=question.opener, method=question.method, fields=rows)


def find_choices(question: type[Question]) -> dict[str, tuple[Any, ...]]:
    """The words that a field may be, for fields where they are few."""
    found = {}
    for name, hint in get_type_hints(question).items():
        for part in (hint, *get_args(hint)):
            if get_origin(part) is Literal:
                found[name] = get_args(part)
    return found


def check_bounds(name: str, value: Any, bounds: Mapping[str, Any]) -> None:
    """Refuse a number that is too small or large, and text or a list that is too short or long."""
    if value is None:
        return
    for word, limit in bounds.items():
        size = len(value) if word.endswith("length") else value
        if word in ("ge", "min_length") and not size >= limit:
            raise BadValue(name, f"{'must be' if word == 'ge' else 'give'} at least {limit}, got {size}.")
        if word in ("le", "max_length") and not size <= limit:
            raise BadValue(name, f"{'must be' if word == 'le' else 'give'} at most {limit}, got {size}.")


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Refuse a word that is none of the known ones."""
    if choices and value is not None and value not in choices:
        raise BadValue(name, f"must be one of {', '.join(map(str, choices))}, got {value!r}.")


def _ordered_fields(question: type[Question]) -> list[dataclasses.Field[Any]]:
    lineage = question.__mro__

    def first_named(each: dataclasses.Field[Any]) -> int:
        return max(index for index, cls in enumerate(lineage) if each.name in get_annotations(cls))

    return sorted(fields(question), key=lambda each: (each.name != "run", first_named(each)))


def _order(step: Any) -> tuple[int, int]:
    """Numbers in order, 'first' before and other words after them."""
    return (1, step) if isinstance(step, int) else (0 if step == "first" else 2, 0)
