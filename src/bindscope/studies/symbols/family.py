"""The family of templates: sequences of symbols that training never shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bindscope.families import Family
from bindscope.tasks.templates import TemplateTask

if TYPE_CHECKING:
    from bindscope.studies.framework.claims import Study
    from bindscope.studies.framework.experiments import Experiment
    from bindscope.studies.framework.preset import Preset


class TemplatesFamily(Family):
    """Sequences such as ``train_6 train_3 train_6``, labelled by their template."""

    task = TemplateTask
    subject = "templates"
    kinds = ("templates",)
    counted = "programs"
    preset = "templates-same-different"
    verified_as = "symbols"
    cell_curves = ("split_accuracy", "split_loss", "training_loss")
    accuracy_note = "right answers (real labels: nearest label is the right one), 95 % interval"

    def presets(self) -> Sequence[Preset]:
        from bindscope.studies.symbols.presets import PRESETS

        return PRESETS

    def experiments(self) -> Sequence[Experiment]:
        from bindscope.studies.symbols.experiments import define as curves
        from bindscope.studies.symbols.kernel import define as learnability
        from bindscope.studies.symbols.pretrained import define as gpt2

        return (*curves.EXPERIMENTS, *learnability.EXPERIMENTS, *gpt2.EXPERIMENTS)

    def study(self) -> Study:
        from bindscope.studies.symbols.study import STUDY

        return STUDY

    def settings_of_seed(self, seed: int) -> dict[str, Any]:
        """A fixed set of sequences is drawn again for each seed."""
        return {"task.seed": seed}

    def watch(self, evaluation: Mapping[str, Any]) -> dict[str, float | None]:
        return {"validation": evaluation["validation"]["accuracy"]}

    def watch_loss(self, evaluation: Mapping[str, Any]) -> float | None:
        return evaluation["validation"]["loss"]  # type: ignore[no-any-return]
