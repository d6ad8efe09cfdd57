"""What a model said to many binding questions, beside all that is known of them.

>>> predictions = predict_answers(model, batch)
>>> predictions.right.mean(), predictions.take(predictions.conflicts).sources
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.measures.binding.attributes import describe_questions
from bindscope.measures.evaluation import read_answers
from bindscope.measures.scores import EARLY_RULES, find_sources
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import RULES, constants_by_line, rows_of, to_digits
from bindscope.tasks.task import Batch

Selection = Literal["all", "misleading", "conflict"]
SELECTIONS: tuple[str, ...] = get_args(Selection)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions and what describes each question; every array is [question]."""

    predicted: np.ndarray  # the digit with the highest logit, −1 where another token has it
    answers: np.ndarray  # the true digit
    sources: np.ndarray  # the earliest line, from 1, that assigns the predicted digit; 0 = no line
    rules: Mapping[str, np.ndarray]  # what each rule says, −1 where it says nothing
    attributes: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.predicted)

    @property
    def right(self) -> np.ndarray:
        return self.predicted == self.answers

    @cached_property
    def misleading(self) -> np.ndarray:
        """Questions whose answer is neither the constant of line 1 nor that of line 2."""
        return np.all([self.answers != self.rules[name] for name in EARLY_RULES], axis=0)

    @cached_property
    def conflicts(self) -> np.ndarray:
        """Questions to which line 1, the positional rule and the chain give three different answers."""
        line_1, positional = self.rules["line_1"], self.rules["positional"]
        return (line_1 != positional) & (line_1 != self.answers) & (positional != self.answers)

    def select(self, selection: Selection) -> Predictions:
        """Only the questions of a named selection; one without any is refused."""
        if selection not in SELECTIONS:
            raise BindscopeError(f"selection '{selection}': choose one of {', '.join(SELECTIONS)}.")
        if selection == "all":
            return self
        mask = self.misleading if selection == "misleading" else self.conflicts
        if not mask.any():
            raise BindscopeError(f"none of the {len(self)} questions is {_WORDS[selection]}; draw more of them.")
        return self.take(mask)

    def take(self, rows: np.ndarray) -> Predictions:
        """Only these questions."""
        return self._map(lambda values: values[rows])

    def _map(self, change: Callable[[np.ndarray], np.ndarray]) -> Predictions:
        return Predictions(
            change(self.predicted),
            change(self.answers),
            change(self.sources),
            {name: change(values) for name, values in self.rules.items()},
            {name: change(values) for name, values in self.attributes.items()},
        )


_WORDS = {
    "misleading": "answered by neither of the first two lines",
    "conflict": "one to which line 1, position and chain give three answers",
}


def predict_answers(model: Transformer, batches: Batch | Iterable[Batch]) -> Predictions:
    """The model's predictions at each question's answer; several batches may differ in program length."""
    parts = [_predict_batch(model, batch) for batch in ([batches] if isinstance(batches, Batch) else batches)]
    if not parts:
        raise BindscopeError("predictions: no question was given.")
    first = parts[0]

    def join(pick: Callable[[Predictions], np.ndarray]) -> np.ndarray:
        return np.concatenate([pick(part) for part in parts])

    return Predictions(
        join(lambda part: part.predicted),
        join(lambda part: part.answers),
        join(lambda part: part.sources),
        {name: join(lambda part, name=name: part.rules[name]) for name in first.rules},  # type: ignore[misc]
        {name: join(lambda part, name=name: part.attributes[name]) for name in first.attributes},  # type: ignore[misc]
    )


def describe_outputs(outputs: np.ndarray, batch: Batch) -> Predictions:
    """Predictions from outputs [batch, output] that were already computed."""
    if "depth" not in batch.labels:
        raise BindscopeError("predictions: these questions have no depth; behaviour is told apart for binding only.")
    predicted = to_digits(batch, outputs.argmax(1))  # [batch]
    n_lines = int(batch.labels["lines"].max())
    sources = find_sources(predicted, constants_by_line(rows_of(batch), n_lines))
    return Predictions(
        predicted=predicted,
        answers=to_digits(batch, batch.targets[:, 0]),
        sources=np.where(sources < n_lines, sources + 1, 0),
        rules={name.removeprefix("rule_"): batch.labels[name][:, 0] for name in RULES},
        attributes=describe_questions(batch),
    )


def _predict_batch(model: Transformer, batch: Batch) -> Predictions:
    return describe_outputs(read_answers(model, batch), batch)
