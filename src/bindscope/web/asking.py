"""A live question over the wire: the request's fields, help and bounds are those of a question of ``bindscope.questions``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from pydantic import ConfigDict, Field, create_model

from bindscope.errors import BindscopeError
from bindscope.questions.fields import LIVE_STEP
from bindscope.questions.opened import Opened
from bindscope.questions.question import Question, RunQuestion, describe_fields
from bindscope.runs.placement import CPU
from bindscope.web.body import Provenance, Strict, to_body
from bindscope.web.lab import LabRun, Missing

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.questions.opened import Step

BOUNDS = ("ge", "le", "min_length", "max_length", "allow_inf_nan")


class Request(Strict):
    """What a request may hold; true is no step, and "3" no number."""

    model_config = ConfigDict(strict=True)


@dataclass(frozen=True)
class LabOpened(Opened):
    """A run of the lab: a step that was not saved is missing there, which is no mistake of the question."""

    def find_step(self, step: Step) -> int:
        try:
            return super().find_step(step)
        except BindscopeError as problem:
            raise Missing(str(problem)) from None


def opened(run: LabRun) -> LabOpened:
    """A run of the lab as questions meet it; its models are read once."""
    return LabOpened(run.name, run.run, run.model)


def request_model(question: type[Question], name: str, names: Sequence[str]) -> type[Strict]:
    """The request that asks a question by some of its fields; ``step`` stands for one of its ``steps``."""
    wanted = ("run", *names) if issubclass(question, RunQuestion) else names
    columns = {each: _column(question, each) for each in wanted}
    return create_model(f"{name}Question", __base__=Request, __doc__=question.__doc__, **columns)  # type: ignore[no-any-return, call-overload]


def to_question(question: type[Question], request: Strict) -> Question:
    """What a request asks."""
    given = request.model_dump()
    if "steps" in describe_fields(question) and "step" in given:
        given["steps"] = given.pop("step")
    return question(**{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()})


def answer_body(
    question: Question, dataset: xr.Dataset, title: str, *, run: LabRun | None = None, **provenance: Any
) -> dict[str, Any]:
    """An answer as it is sent, with the command and the Python that ask for it again."""
    if run is not None:
        assert isinstance(question, RunQuestion)
        question = question.settled(opened(run))
        provenance["run"] = run.name
    family, placement = ("", CPU) if run is None else (run.family_location, run.run.placement)
    command = " ".join([question.command(family), *placement.options])
    python = question.python(family, placement)
    return to_body(dataset, Provenance(**provenance), title=title, command=command, python=python)


def _column(question: type[Question], name: str) -> tuple[Any, Any]:
    if name == "step" and name not in describe_fields(question):
        return int, Field(description=describe_fields(question)["steps"].help, **_bounds(LIVE_STEP))
    about, hint = describe_fields(question)[name], get_type_hints(question)[name]
    live = {**about.bounds, **about.live}
    if live.get("never"):  # it may name a file, whose code a server does not run for whoever asks
        raise ValueError(f"{question.__name__}.{name} is never taken from a request.")
    kind: Any = live.get("type", hint)
    if "item" in live:
        item: Any = get_args(kind)[0]
        kind = list[Annotated[item, Field(**_bounds(live["item"]))]]
    kind = Annotated[kind, Field(**_bounds(live))]
    default = live.get("default", next(each.default for each in fields(question) if each.name == name))
    settings: dict[str, Any] = {"description": about.help}
    if default is None and not live.get("required"):
        kind = kind | None
    if default is not MISSING and not live.get("required"):
        settings |= {"default_factory": list} if isinstance(default, tuple) else {"default": default}
    return kind, Field(**settings)


def _bounds(live: Any) -> dict[str, Any]:
    return {name: live[name] for name in BOUNDS if name in live}
