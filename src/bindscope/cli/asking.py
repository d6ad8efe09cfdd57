"""A command that asks a question: its options are the question's fields, with their help and bounds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_type_hints

from cyclopts import Parameter

from bindscope.errors import BindscopeError
from bindscope.questions.question import Ask, BadValue, Question, describe_fields, describe_question, to_step, to_steps

Command = Callable[..., Any]
ALIASES = {"--steps": "--step", "--step": "--steps"}  # both are understood


def asking(question: type[Question], **defaults: Any) -> Callable[[Command], Command]:
    """Make a command of a function whose first parameter is the question; ``defaults`` are the command's own.

    >>> @asking(Patch, grid="chain")
    ... def patch(question: Patch, /, *, json: Flag = False) -> None: ...
    """

    def decorate(function: Command) -> Command:
        own = list(inspect.signature(function).parameters.values())[1:]
        hints = get_type_hints(function, include_extras=True)
        parameters = [*parameters_of(question, defaults), *(each.replace(annotation=hints[each.name]) for each in own)]

        def command(*arguments: Any, **options: Any) -> Any:
            bound = inspect.Signature(parameters).bind(*arguments, **options)
            bound.apply_defaults()
            more = {each.name: bound.arguments.pop(each.name) for each in own}
            with naming_options(question):
                return function(question(**bound.arguments), **more)

        command.__name__, command.__doc__, command.__module__ = (
            function.__name__, function.__doc__, function.__module__,
        )  # fmt: skip
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return command

    return decorate


def parameters_of(question: type[Question], defaults: dict[str, Any]) -> list[inspect.Parameter]:
    """The fields as parameters of a command, positional ones first."""
    hints, usual = get_type_hints(question), {each.name: each.default for each in fields(question)}
    found = []
    for name, about in describe_fields(question).items():
        default, bare = defaults.get(name, usual[name]), about.positional and not about.flag
        kind: Any = inspect.Parameter.POSITIONAL_ONLY if bare else inspect.Parameter.KEYWORD_ONLY
        kept: Any = typed_as(hints[name], about, default)
        if bare and hints[name] == tuple[str, ...]:
            kind, kept, default = inspect.Parameter.VAR_POSITIONAL, str, MISSING
        given = inspect.Parameter.empty if default is MISSING else default
        annotation = Annotated[kept, option(question, name, default)]
        found.append(inspect.Parameter(name, kind, default=given, annotation=annotation))
    return sorted(found, key=lambda each: each.kind)


def option(question: type[Question], name: str, default: Any = None) -> Parameter:
    """A field as cyclopts takes it: ``Annotated[str, option(Lens, "run")]``."""
    about = describe_fields(question)[name]
    settings: dict[str, Any] = {"help": about.help}
    if about.joined or default == "-":
        settings["allow_leading_hyphen"] = True  # -1,1 and - for standard input are values, not options
    if not about.positional:
        settings["name"] = options_of(question, name)
    hint = get_type_hints(question)[name]
    usual = next(each.default for each in fields(question) if each.name == name)
    if str(hint).startswith("tuple") or usual is False:
        settings |= {"negative": "", "show_default": False}
    return Parameter(**settings)


def options_of(question: type[Question], name: str) -> list[str]:
    """How an option is written, and how else it is understood."""
    flag = next(row["flag"] for row in describe_question(question)["fields"] if row["name"] == name)
    return [flag, ALIASES[flag]] if flag in ALIASES else [flag]


def typed_as(hint: Any, about: Ask, default: Any) -> Any:
    """What a person types for a field: text that the question converts itself, or the field's own type."""
    if about.convert in (to_step, to_steps) or about.joined or hint is Any:
        return str | None if default is None else str
    return hint


@contextmanager
def naming_options(*questions: type[Question]) -> Iterator[None]:
    """Inside, a field that cannot be as it was given is named by its option."""
    try:
        yield
    except BadValue as problem:
        known = [question for question in questions if problem.name in describe_fields(question)]
        if known and describe_fields(known[0])[problem.name].positional:
            raise BindscopeError(problem.problem) from None
        flag = options_of(known[0], problem.name)[0] if known else f"--{problem.name.replace('_', '-')}"
        raise BindscopeError(f"{flag}: {problem.problem}") from None
