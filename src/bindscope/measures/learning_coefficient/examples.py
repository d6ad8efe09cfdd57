"""The examples that a coefficient is measured on: the same minibatches for every checkpoint, all or some of their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.families import family_of
from bindscope.measures.scores import EARLY_RULES
from bindscope.tasks.binding import to_digits
from bindscope.tasks.task import Batch

WHOLE, MISLEADING = "all", "misleading"
ANSWERS_AT_ONCE = 128  # in a minibatch
LEAST_ANSWERS = 16  # of a kind that is measured by itself


@dataclass(frozen=True, eq=False)
class Examples:
    """Minibatches, and which of their answers count; None where all do."""

    batches: tuple[Batch, ...]
    counted: tuple[np.ndarray, ...] | None = None  # each [batch, target] bool
    loss: str = "answer"  # as in training: "answer", or "all" for every token

    @property
    def n_examples(self) -> int:
        """How many examples have an answer that counts."""
        if self.counted is None:
            return sum(len(batch) for batch in self.batches)
        return int(sum(marks.any(1).sum() for marks in self.counted))


def draw_examples(
    task: Any,
    rng: np.random.Generator,
    n: int,
    data: str = WHOLE,
    loss: str = "answer",
    n_batches: int | None = None,
) -> Examples:
    """``n`` examples of the whole task in ``n_batches``, or in minibatches of about ``ANSWERS_AT_ONCE`` answers; ``data``
    keeps some of the answers.

    It is ``misleading`` (answers that stand neither on line 1 nor on line 2) or ``LABEL=VALUE`` by a label of the
    task's batches, as ``depth=3``.
    """
    drawn = family_of(task).draw_whole(task, rng, n)
    n_rows = max(1, ANSWERS_AT_ONCE // drawn.targets.shape[1]) if n_batches is None else -(-n // n_batches)
    batches = tuple(drawn.take(slice(first, first + n_rows)) for first in range(0, n, n_rows))
    if data == WHOLE:
        return Examples(batches, loss=loss)
    kept = [(batch, marks) for batch in batches if (marks := mark_answers(batch, data)).any()]
    if sum(int(marks.sum()) for _, marks in kept) < LEAST_ANSWERS:
        raise BindscopeError(f"data '{data}': too few of {n} examples are such; draw more, or choose others.")
    return Examples(tuple(batch for batch, _ in kept), tuple(marks for _, marks in kept))


def mark_answers(batch: Batch, data: str) -> np.ndarray:
    """Which answers [batch, target] are of this kind."""
    if data == MISLEADING:
        missing = [name for name in EARLY_RULES if f"rule_{name}" not in batch.labels]
        if missing:
            raise BindscopeError(f"data '{MISLEADING}': only programs can mislead, and these examples are none.")
        answers = to_digits(batch, batch.targets)  # [batch, target]
        return np.all([answers != batch.labels[f"rule_{name}"] for name in EARLY_RULES], axis=0)
    label, _, value = data.partition("=")
    if label not in batch.labels or not value.lstrip("-").isdigit():
        known = ", ".join(f"{name}=…" for name in sorted(batch.labels)) or "none"
        raise BindscopeError(f"data '{data}': use '{WHOLE}', '{MISLEADING}' or a label with a number; labels: {known}.")
    return np.asarray(batch.labels[label] == int(value))
