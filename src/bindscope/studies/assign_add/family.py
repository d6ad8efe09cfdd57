"""The family of assign-and-add: sums modulo a number whose operands may stand behind variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.families import EventTable, Example, Family
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.task import Batch

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from matplotlib.axes import Axes

    from bindscope.measures.phases import Phase
    from bindscope.measures.transplanting import Asked
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.claims import Study
    from bindscope.studies.framework.experiments import Experiment
    from bindscope.studies.framework.preset import Preset
    from bindscope.studies.plots.curves import Panel

SHOWN = ("n1", "n2", "n_variables", "swap_seen")  # labels of an example that are printed


class AssignAddFamily(Family):
    """Sums such as ``c=1 b=17 | b+19``."""

    task = AssignAddTask
    subject = "sums"
    kinds = ("sums",)
    counted = "sums"
    view = "bindscope.notebook.sums:SumsView"
    preset = "assign-add"
    published_model: Mapping[str, Any] = {"activation": "relu", "norm": "none"}
    cell_curves = ("split_accuracy", "half_accuracy", "training_loss")
    step_scale = "linear"  # what happens to sums happens late
    usual_parts = ("pattern 2", "routing", "computing")

    def presets(self) -> Sequence[Preset]:
        from bindscope.studies.assign_add.presets import PRESETS

        return PRESETS

    def experiments(self) -> Sequence[Experiment]:
        from bindscope.studies.assign_add.experiments.define import EXPERIMENTS

        return EXPERIMENTS

    def study(self) -> Study:
        from bindscope.studies.assign_add.study import STUDY

        return STUDY

    def describe_example(self, task: AssignAddTask, batch: Batch, row: int) -> Example:
        example = super().describe_example(task, batch, row)
        facts = {name: example.facts[name] for name in SHOWN if name in example.facts}
        return Example(example.text, example.answer, facts)

    def predict(self, task: AssignAddTask, models: Iterable[tuple[int, Any]], example: Any) -> xr.Dataset:
        from bindscope.measures.arithmetic.one_sum import predict_sum

        return predict_sum(models, task, example)

    def score_split(self, task: AssignAddTask, model: Any, name: str, batch: Batch) -> dict[str, Any]:
        from bindscope.measures.evaluation import read_answers
        from bindscope.measures.scores import score_halves, score_tokens

        outputs, targets = read_answers(model, batch), batch.targets[:, 0]
        scores = score_tokens(outputs, targets)
        if name.endswith("add") and "swap_seen" in batch.labels:  # held-out pairs, of an operator that commutes
            scores |= score_halves(outputs, targets, batch.labels["swap_seen"][:, 0])
        return scores

    def trajectory_variables(
        self, evaluations: Sequence[Mapping[str, Any]], splits: Sequence[str]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        from bindscope.studies.assign_add.learning.phases import half_variables

        return half_variables(evaluations, splits)

    def describe_phases(self) -> dict[str, str]:
        from bindscope.measures.arithmetic.spikes import SumPhaseCriterion

        return SumPhaseCriterion().describe()

    def find_phases(self, dataset: xr.Dataset, criterion: Any = None) -> list[Phase]:
        from bindscope.studies.assign_add.learning.phases import phases_of_sums

        return phases_of_sums(dataset)

    def list_events(self, dataset: xr.Dataset) -> list[EventTable]:
        """The spikes: which splits rose suddenly, and when."""
        from bindscope.studies.assign_add.learning.phases import list_spikes, spikes_of

        return list_spikes(spikes_of(dataset))

    def ask_transplants(self, task: AssignAddTask, rng: np.random.Generator, n: int) -> Asked:
        from bindscope.measures.arithmetic.asked import ask_splits

        return ask_splits(task, rng, n)

    def find_jumps(self, run: Run) -> Sequence[tuple[int, int]]:
        from bindscope.studies.assign_add.learning.spikes import find_windows

        if windows := find_windows(run):
            return [(window.before, window.after) for window in windows]
        raise BindscopeError(
            f"{run.name}: no spike with checkpoints close by on both sides; name two with --from and --to."
        )

    def panels(self, dataset: xr.Dataset) -> list[Panel]:
        from bindscope.studies.assign_add.learning.panels import sums_panels

        return sums_panels(dataset)

    def mark(self, axes: Axes, dataset: xr.Dataset) -> None:
        from bindscope.studies.assign_add.learning.panels import mark_spikes
        from bindscope.studies.assign_add.learning.phases import spikes_of

        mark_spikes(axes, spikes_of(dataset))
