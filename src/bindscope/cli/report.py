"""A run's HTML report: its trajectory, and what its checkpoints said to a few programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bindscope.measures.binding.phases import Phase
    from bindscope.runs.directory import Run
    from bindscope.studies.plots.report import ExampleProgram, ReportedRun

N_CHECKPOINTS = 8  # columns of the table of predictions
SEED = 2  # draws the programs that are shown


def write_report(runs: Sequence[Run], path: Path, title: str | None = None) -> Path:
    """Write the report of one or several runs as one HTML file that needs nothing else."""
    from bindscope.runs.files import explain_failure, write_atomically
    from bindscope.studies.plots.report import render_reports

    page = render_reports(title or runs[0].name, [_describe(run) for run in runs])
    with explain_failure(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page.encode())
    return path


def _describe(run: Run) -> ReportedRun:
    from bindscope.studies.framework.command import find_command
    from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset
    from bindscope.studies.plots.report import ReportedRun

    dataset = trajectory_dataset(run.metrics, run.manifest.config)
    phases = phases_of(dataset)
    examples = show_examples(run, phases) if run.config.task.family == "binding" and run.steps else ()
    return ReportedRun(run.name, dataset, run.manifest.config, phases, find_command(run), examples=examples)


def show_examples(run: Run, phases: Sequence[Phase]) -> list[ExampleProgram]:
    """One program of each depth on which the first two lines mislead, with the answers of a few checkpoints."""
    from bindscope.studies.binding.behaviour.one_program import predict_program
    from bindscope.studies.plots.report import ExampleProgram, Prediction

    task: Any = run.config.task
    models = {step: run.checkpoint(step) for step in choose_steps(run.steps, phases)}
    shown = []
    for program in _misleading_programs(task):
        shares = predict_program(models.items(), program).probability.values  # [step, output]
        predictions = tuple(
            Prediction(step, task.vocabulary.symbols[row.argmax()], round(float(row.max()), 6))
            for step, row in zip(models, shares)
        )
        remark = f"depth {program.depth}, root on line {program.root_line}"
        habit = program.assignments[0].source
        shown.append(ExampleProgram(program.text, str(program.answer), predictions, habit, remark))
    return shown


def choose_steps(kept: Sequence[int], phases: Sequence[Phase], n: int = N_CHECKPOINTS) -> list[int]:
    """Up to ``n`` kept steps that tell the story: the ends and middles of the phases, the first and the last step."""
    wanted = [kept[0], kept[-1]]
    for phase in phases:
        wanted += [phase.last_step, phase.first_step, (phase.first_step + phase.last_step) // 2]
    chosen: list[int] = []
    for step in wanted:
        nearest = min(kept, key=lambda candidate: (abs(candidate - step), candidate))
        if nearest not in chosen:
            chosen.append(nearest)
    return sorted(chosen[:n])


def _misleading_programs(task: Any) -> list[Any]:
    import numpy as np

    from bindscope.tasks.binding import Program

    pool = task.sample_evaluation(np.random.default_rng(SEED), 500)["test"]
    found: dict[int, Program] = {}
    for tokens in pool.tokens:
        program = Program.from_tokens(tokens)
        early = {assignment.source for assignment in program.assignments[:2]}
        if program.root_line > 2 and str(program.answer) not in early:
            found.setdefault(program.depth, program)
    return [found[depth] for depth in sorted(found)]
