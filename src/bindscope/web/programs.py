"""What every page about programs needs: a reader's program as the run's task takes it, and questions about one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Protocol, cast

from pydantic import Field

from bindscope.errors import BindscopeError
from bindscope.web.lab import LabRun
from bindscope.web.page import Question, Step

if TYPE_CHECKING:
    from bindscope.tasks.binding.pairs import CounterfactualPairs
    from bindscope.tasks.binding.program import Program
    from bindscope.tasks.binding.task import BindingTask

MAX_PROGRAM = 400  # characters: forty lines of six
KINDS = ("programs",)  # of runs that are about them
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
    """A program of a reader, lines ended by line breaks or ';', as the run's task reads it and its model can take it."""
    task, model = binding_task(run), run.run.config.model
    program = task.parse(text.replace(";", "\n"))
    if len(program.tokens) > model.n_positions:
        raise BindscopeError(
            f"the program has {program.n_lines} lines and {len(program.tokens)} tokens; the model of {run.name} reads "
            f"{model.n_positions}: leave out lines."
        )
    return program


def read_pair(run: LabRun, question: HasPair) -> tuple[tuple[Program, Program], CounterfactualPairs]:
    """The two programs of a question and the pair they make; one that cannot be patched is refused with a sentence."""
    from bindscope.tasks.binding.pairs import pair_programs

    program, counterfactual = (read_program(run, text) for text in (question.program, question.counterfactual))
    pairs = pair_programs(program, counterfactual)
    if program.answer == counterfactual.answer:
        raise BindscopeError(
            f"both programs have the answer {program.answer}; change the counterfactual so that its answer differs."
        )
    return (program, counterfactual), pairs


def binding_task(run: LabRun) -> BindingTask:
    """The run's task, where programs are what it is about."""
    return cast("BindingTask", run.require("programs"))
