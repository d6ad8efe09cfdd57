"""What every page about programs needs: a reader's program as the run's task takes it, and questions about one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import Field

from bindscope.errors import BindscopeError
from bindscope.web.lab import LabRun
from bindscope.web.page import Question, Step

if TYPE_CHECKING:
    from bindscope.tasks.binding.pairs import CounterfactualPairs
    from bindscope.tasks.binding.program import Program
    from bindscope.tasks.binding.task import BindingTask

MAX_PROGRAM = 400  # characters: forty lines of six
FAMILIES = ("binding",)  # of runs that are about programs
ProgramText = Annotated[str, Field(min_length=1, max_length=MAX_PROGRAM)]
Steps = Annotated[list[Step], Field(min_length=1, max_length=600)]
SiteText = Annotated[str, Field(min_length=1, max_length=40)]
Sites = Annotated[list[SiteText], Field(max_length=64)]


class OneStepQuestion(Question):
    """About one checkpoint."""

    step: Step


class HasPair(Protocol):
    """A question about two programs."""

    program: str
    counterfactual: str


def asked_step(question: OneStepQuestion, run: LabRun) -> list[int]:
    """The weights that a question about one checkpoint depends on."""
    return [question.step]


def read_program(run: LabRun, text: str) -> Program:
    """A program of a reader, as the run's task reads it and its model can take it."""
    return binding_task(run).read(text, run.run.config.model.n_positions)


def read_pair(run: LabRun, question: HasPair) -> tuple[tuple[Program, Program], CounterfactualPairs]:
    """The two programs of a question and the pair they make; one that cannot be patched is refused with a sentence."""
    from bindscope.tasks.binding import pairs

    most = run.run.config.model.n_positions
    *programs, pair = pairs.read_pair(binding_task(run), question.program, question.counterfactual, most)
    return (programs[0], programs[1]), pair


def binding_task(run: LabRun) -> BindingTask:
    """The run's task, where programs are what it is about."""
    from bindscope.tasks.binding.task import BindingTask

    task = run.run.config.task
    if not isinstance(task, BindingTask):
        raise BindscopeError(f"{run.name}: its task is {run.family}; programs are for runs on binding.")
    return task
