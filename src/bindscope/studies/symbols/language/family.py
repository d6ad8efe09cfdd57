"""The family of text: the next token, at every position of a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bindscope.families import Example, Family
from bindscope.tasks.task import Batch
from bindscope.tasks.text import LIBRARY, TextTask

if TYPE_CHECKING:
    from bindscope.studies.framework.experiments import Experiment
    from bindscope.studies.framework.preset import Preset


class TextFamily(Family):
    """Windows of a text that a person names."""

    task = TextTask
    subject = "text"
    kinds = ("text",)
    counted = "tokens"
    preset = "text-small"
    settings_to_measure = {"task.source": LIBRARY}  # noqa: RUF012  any text will do
    cell_curves = ("split_accuracy", "split_perplexity", "training_loss")
    accuracy_note = "next tokens guessed right, 95 % interval"

    def presets(self) -> Sequence[Preset]:
        from bindscope.studies.symbols.language.presets import PRESETS

        return PRESETS

    def experiments(self) -> Sequence[Experiment]:
        from bindscope.studies.symbols.language.define import EXPERIMENTS

        return EXPERIMENTS

    def describe_example(self, task: TextTask, batch: Batch, row: int) -> Example:
        return Example(task.decode(batch.tokens[row]), task.decode(batch.targets[row, -1:]), {})

    def score_split(self, task: TextTask, model: Any, name: str, batch: Batch) -> dict[str, Any]:
        """Asked at every token, and by its probability."""
        from bindscope.measures.evaluation import evaluating
        from bindscope.measures.perplexity import score_text

        with evaluating(model):
            return score_text(model, batch)

    def watch(self, evaluation: Mapping[str, Any]) -> dict[str, float | None]:
        return {"validation": evaluation["validation"]["accuracy"]}
