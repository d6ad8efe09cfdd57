"""Programs: what a model answers to one, live, at one checkpoint or over all of them."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import xarray as xr
from pydantic import Field

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.program import DIGITS, VOCABULARY, Program
from bindscope.tasks.vocabulary import show_symbol
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun
from bindscope.web.page import Operation, Page, Question

MAX_PROGRAM = 400  # characters: forty lines of six
ProgramText = Annotated[str, Field(min_length=1, max_length=MAX_PROGRAM)]
Steps = Annotated[list[int], Field(min_length=1, max_length=600)]


class PredictQuestion(Question):
    """What does the model answer at these checkpoints?"""

    steps: Steps
    program: ProgramText


def predict(lab: Lab, run: LabRun, question: PredictQuestion) -> dict[str, Any]:
    """Probabilities of every output over (step, output), and the true answer."""
    from bindscope.measures.evaluation import read_answers
    from bindscope.tasks.binding.programs import ask_programs

    program = read_program(run, question.program)
    batch = ask_programs([program])
    rows = []
    for step in question.steps:
        logits = read_answers(run.model(run.find_step(step)), batch)[0].astype(float)  # [output]
        shares = np.exp(logits - logits.max())
        rows.append(shares / shares.sum())
    outputs = [show_symbol(symbol) for symbol in VOCABULARY.symbols][: len(rows[0])]
    dataset = xr.Dataset({"probability": (("step", "output"), np.array(rows), {"units": "share"})})
    dataset = dataset.assign_coords(step=question.steps, output=outputs)
    dataset.attrs = {"answer": str(program.answer), "depth": program.depth}
    only = question.steps[0] if len(question.steps) == 1 else None
    text = question.program.replace("\n", ";")
    return to_body(
        dataset,
        Provenance(run=run.name, step=only, n=1),
        title="What the model answers",
        command=f"bindscope run {run.name} '{text}' --step {'all' if only is None else only}",
    )


def read_program(run: LabRun, text: str) -> Program:
    """A program of a reader, lines ended by line breaks or ';', as the run's task reads it."""
    if run.family != "binding":
        raise BindscopeError(f"{run.name}: its task is {run.family}; programs are for runs on binding.")
    program = run.run.config.task.parse(text.replace(";", "\n"))
    assert isinstance(program, Program)
    assert program.answer in range(len(DIGITS))
    return program


def asked_steps(question: PredictQuestion, run: LabRun) -> list[int]:
    return question.steps


PAGE = Page(
    "program",
    operations=(Operation("predict", PredictQuestion, predict, "What a model answers to a program", asked_steps),),
)
