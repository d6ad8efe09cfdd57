"""The family of code: binding programs written as text, so that language models can be asked them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bindscope.families import Example
from bindscope.studies.binding.family import BindingFamily
from bindscope.tasks.binding import Program, rows_of, to_digits
from bindscope.tasks.code import CodeTask
from bindscope.tasks.task import Batch

if TYPE_CHECKING:
    from bindscope.studies.framework.claims import Study
    from bindscope.studies.framework.experiments import Experiment
    from bindscope.studies.framework.preset import Preset

MEASURED = (
    "trajectory",
    "predictions",
    "importance",
    "lens",
    "chain",
    "heads",
    "hops",
    "grids",
    "subspaces",
    "projections",
    "algorithm",
    "algorithm_steps",
)


class CodeFamily(BindingFamily):
    """Programs such as ``a = 5 / b = a / print(b) / >>>``.

    What is measured is what the binding family measures, on pairs and positions of the same programs. The paper's claims
    are about models that were trained on its own task, so none is judged here.
    """

    task = CodeTask
    subject = "binding programs"
    preset = "code-bytes"

    def presets(self) -> Sequence[Preset]:
        from bindscope.studies.binding.code.presets import PRESETS

        return PRESETS

    def experiments(self) -> Sequence[Experiment]:
        return ()

    def study(self) -> Study:
        """Results of its runs, without claims."""
        from bindscope.studies.binding.study import STUDY

        results = tuple(result for result in STUDY.results if result.name in MEASURED)
        return replace(
            STUDY, family=self.name, title="Binding in language models", claims=(), results=results, evidence=()
        )

    @property
    def pages(self) -> tuple[str, ...]:
        return self.kinds

    def fit_task(self, task: CodeTask, path: Path, d_vocab: int, tokenizer: Path | None = None) -> CodeTask:
        """The task in the tokens of the tokenizer beside a model, in the folder above it, or named."""
        beside = path if path.is_dir() else path.parent
        places = [tokenizer] if tokenizer else [place for place in (beside, beside.parent) if _has_tokenizer(place)]
        return task.with_tokenizer(places[0] if places else beside, d_vocab)

    def score_split(self, task: Any, model: Any, name: str, batch: Batch) -> dict[str, Any]:
        """As of the binding family, and what answering with the value of a random variable would come to."""
        from bindscope.measures.binding.random_variable import count_holders

        scores = super().score_split(task, model, name, batch)
        by_chance = count_holders(batch, to_digits(batch, batch.targets[:, 0])).mean()
        in_program = 1 - scores["prediction_source"][-1]
        return {**scores, "random_variable": {"followed": round(in_program, 6), "right": round(float(by_chance), 6)}}

    def describe_example(self, task: Any, batch: Batch, row: int) -> Example:
        one = batch.take(slice(row, row + 1))
        program = Program.from_tokens(rows_of(one)[0])
        facts = {"depth": program.depth, "root_line": program.root_line, "program": program.one_line}
        return Example(task.text_of(program), task.values[int(to_digits(one, one.targets[0, :1])[0])], facts)

    def render_tokens(self, task: Any, tokens: np.ndarray) -> str:
        return task.text_of(Program.from_tokens(task.rendering.read_rows(tokens[None])[0]))

    def format_answer(self, task: Any, target: Any) -> str:
        return task.name_output(int(target))


def _has_tokenizer(place: Path) -> bool:
    return any((place / name).is_file() for name in ("tokenizer.json", "vocab.json"))
