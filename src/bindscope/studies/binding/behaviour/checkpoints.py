"""A few programs through training: what checkpoints answer where the first two lines mislead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from bindscope.measures.evaluation import read_answers
from bindscope.measures.phases import Phase
from bindscope.model.transformer import Transformer
from bindscope.runs.directory import Run
from bindscope.studies.plots.report import ExampleProgram, Prediction, choose_steps
from bindscope.tasks.binding import BindingTask, Program, rows_of

SEED = 2  # draws the programs that are shown
N_DRAWN = 500


def show_programs(run: Run, phases: Sequence[Phase]) -> list[ExampleProgram]:
    """One program of each depth on which the first two lines mislead, with the answers of a few checkpoints."""
    models = {step: run.checkpoint(step) for step in choose_steps(run.steps, phases)}
    task = cast(BindingTask, run.config.task)
    return [_show(task, program, models) for program in _misleading_programs(task)]


def _show(task: BindingTask, program: Program, models: Mapping[int, Transformer]) -> ExampleProgram:
    predictions = tuple(_predict(task, step, model, program) for step, model in models.items())
    remark = f"depth {program.depth}, root on line {program.root_line}"
    heuristic = program.assignments[0].source
    return ExampleProgram(program.text, str(program.answer), predictions, heuristic, remark)


def _predict(task: BindingTask, step: int, model: Transformer, program: Program) -> Prediction:
    outputs = read_answers(model, task.to_batch(program))[0].astype(float)  # [output]
    weights = np.exp(outputs - outputs.max())
    best = int(outputs.argmax())
    return Prediction(step, task.name_output(best), round(float(weights[best] / weights.sum()), 6))


def _misleading_programs(task: BindingTask) -> list[Program]:
    """The first program of each depth whose answer stands neither on line 1 nor on line 2."""
    split = task.sample_evaluation(np.random.default_rng(SEED), N_DRAWN)["test"]
    found: dict[int, Program] = {}
    for row in rows_of(split):
        program = Program.from_tokens(row)
        early = {assignment.source for assignment in program.assignments[:2]}
        if program.root_line > 2 and str(program.answer) not in early:
            found.setdefault(program.depth, program)
    return [found[depth] for depth in sorted(found)]
