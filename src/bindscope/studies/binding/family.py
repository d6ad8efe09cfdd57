"""The family of binding: symbolic programs that assign variables and ask for one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.families import Example, Family, LearnedParts
from bindscope.tasks.binding import BindingTask, Program, constants_by_line, rows_of, to_digits
from bindscope.tasks.task import Batch

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.measures.phases import Phase
    from bindscope.measures.transplanting import Asked
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.claims import Study
    from bindscope.studies.framework.experiments import Experiment
    from bindscope.studies.framework.preset import Preset
    from bindscope.studies.plots.curves import Panel
    from bindscope.studies.plots.report import ExampleProgram, Highlights


class BindingFamily(Family):
    """Programs such as ``a=5 / b=a / #b:``."""

    task = BindingTask
    subject = "binding programs"
    kinds = ("programs",)
    counted = "programs"
    view = "bindscope.notebook.programs:ProgramsView"
    preset = "binding-laptop"
    counted_by = {  # noqa: RUF012
        "accuracy_by_depth": "n_by_depth",
        "accuracy_by_root_line": "n_by_root_line",
        "follows_chain": "n_misleading",
        "follows_early_lines": "n_misleading",
    }

    def presets(self) -> Sequence[Preset]:
        from bindscope.studies.binding.presets import PRESETS

        return PRESETS

    def experiments(self) -> Sequence[Experiment]:
        from bindscope.studies.binding.experiments.define import EXPERIMENTS

        return EXPERIMENTS

    def study(self) -> Study:
        from bindscope.studies.binding.study import STUDY

        return STUDY

    def pages_of(self, task: BindingTask) -> tuple[str, ...]:
        return (*self.pages, "reassignment") if task.reassign else self.pages

    def draw_examples(self, task: BindingTask, rng: np.random.Generator, n: int) -> Batch:
        return replace(task, queries=1).sample_batch(rng, n)

    def draw_whole(self, task: BindingTask, rng: np.random.Generator, n: int) -> Batch:
        return replace(task, min_lines=None, curriculum=None).sample_batch(rng, n)

    def check_depth(self, task: BindingTask, depth: int) -> None:
        if not 1 <= depth <= task.max_depth:
            raise BindscopeError(f"--depth: must lie between 1 and {task.max_depth} for this task, got {depth}.")

    def predict(self, task: BindingTask, models: Iterable[tuple[int, Any]], example: Program) -> xr.Dataset:
        from bindscope.measures.binding.one_program import predict_program

        return predict_program(models, task, example)

    def describe_example(self, task: BindingTask, batch: Batch, row: int) -> Example:
        program = Program.from_tokens(rows_of(batch.take(slice(row, row + 1)))[0])
        chain = [str(program.assignments[line - 1]) for line in program.chain]
        facts = {"depth": program.depth, "root_line": program.root_line, "chain": chain}
        return Example(program.text, self.format_answer(task, batch.targets[row, 0]), facts)

    def render_tokens(self, task: BindingTask, tokens: np.ndarray) -> str:
        return "".join(task.vocabulary.decode(list(tokens)))

    def score_split(self, task: BindingTask, model: Any, name: str, batch: Batch) -> dict[str, Any]:
        from bindscope.measures.evaluation import read_answers
        from bindscope.measures.scores import score_binding

        outputs = read_answers(model, batch)  # [batch, output]
        constants = constants_by_line(rows_of(batch), int(batch.labels["lines"].max()))  # [batch, line]
        return score_binding(outputs, batch, constants, to_digits(batch, np.arange(outputs.shape[1])))

    def watch(self, evaluation: Mapping[str, Any]) -> dict[str, float | None]:
        by_depth = evaluation["test"]["accuracy_by_depth"]
        return {f"depth {depth}": accuracy for depth, accuracy in enumerate(by_depth, start=1)}

    def trajectory_variables(
        self, evaluations: Sequence[Mapping[str, Any]], splits: Sequence[str]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        from bindscope.studies.binding.learning.trajectory import binding_variables

        return binding_variables([evaluation["test"] for evaluation in evaluations])

    def describe_phases(self) -> dict[str, str]:
        from bindscope.measures.binding.phases import PhaseCriterion

        return PhaseCriterion().describe()

    def find_phases(self, dataset: xr.Dataset, criterion: Any = None) -> list[Phase]:
        from bindscope.studies.binding.learning.trajectory import find_phases

        return find_phases(dataset, criterion)

    def learned_parts(self, dataset: xr.Dataset) -> LearnedParts:
        curves = {f"depth {int(d)}": dataset.accuracy_by_depth.sel(depth=d).values for d in dataset.depth.values}
        return LearnedParts("depth", "When each hop was learned", curves, dataset.n_by_depth.values.tolist())

    def summarise_cell(self, trajectory: xr.Dataset) -> xr.Dataset:
        from bindscope.studies.binding.learning.cells import summarise_cell

        return summarise_cell(trajectory)

    def ask_transplants(self, task: BindingTask, rng: np.random.Generator, n: int) -> Asked:
        from bindscope.measures.binding.plateau_transplants import ask_by_depth

        return ask_by_depth(task, rng, n)

    def find_jumps(self, run: Run) -> Sequence[tuple[int, int]]:
        from bindscope.studies.binding.transplants.measure import find_window

        window = find_window(run)
        return [(window.before, window.after)]

    def panels(self, dataset: xr.Dataset) -> list[Panel]:
        from bindscope.studies.binding.learning.panels import binding_panels

        return binding_panels(dataset)

    def describe_run(self, dataset: xr.Dataset, phases: Sequence[Phase]) -> Highlights:
        from bindscope.studies.binding.learning.report import describe_run

        return describe_run(dataset, phases)

    def show_examples(self, run: Run, phases: Sequence[Phase]) -> list[ExampleProgram]:
        from bindscope.studies.binding.behaviour.checkpoints import show_programs

        return show_programs(run, phases)
