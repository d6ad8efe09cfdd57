"""Do wrong answers come from the longest chain? The shortcut that remains when the first lines are no longer favoured.

A chain here is a constant and every line that leads to it; it is as long as it has lines. Asked are questions in which
one other chain is the longest of all, starts after line 2 and holds another digit than the answer. The control is a
chain drawn among the rest, under the same conditions apart from its length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.measures.evaluation import read_answers
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, to_digits
from bindscope.tasks.binding.programs import Programs
from bindscope.tasks.task import Batch

N_CANDIDATES = 20_000  # programs that the questions are chosen from


@dataclass(frozen=True, eq=False)
class LongestChainQuestions:
    """Questions with the digit of the longest chain and that of another one, both [question]."""

    batch: Batch
    longest: np.ndarray
    another: np.ndarray


def sample_longest_chain(task: BindingTask, rng: np.random.Generator, n_questions: int) -> LongestChainQuestions:
    """``n_questions`` questions about programs of the task in which the longest chain would mislead.

    >>> fraction_of_longest(model, sample_longest_chain(task, np.random.default_rng(0), 500))
    (0.12, 0.09)
    """
    programs, queries = task.sample_questions(rng, N_CANDIDATES, task.lines)
    longest, another = rival_roots(programs, queries[:, 0], rng)
    rows = np.flatnonzero((longest >= 0) & (another >= 0))[:n_questions]
    if len(rows) < n_questions:
        raise BindscopeError(
            f"longest chain: {N_CANDIDATES:,} programs of {task.lines} lines hold {len(rows)} questions that tell and "
            f"{n_questions} are wanted; use more lines or fewer questions."
        )
    value = programs.value
    return LongestChainQuestions(
        task.ask(programs.take(rows), queries[rows]), value[rows, longest[rows]], value[rows, another[rows]]
    )


def fraction_of_longest(model: Transformer, questions: LongestChainQuestions) -> tuple[float, float]:
    """How often the model answers with the digit of the longest chain, and of the other one."""
    predicted = to_digits(questions.batch, read_answers(model, questions.batch).argmax(1))
    return float((predicted == questions.longest).mean()), float((predicted == questions.another).mean())


def rival_roots(programs: Programs, queries: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Root lines [program] of the longest chain and of one drawn among the others, −1 where the question does not tell."""
    rows = np.arange(len(programs))
    lines = np.arange(programs.n_lines)
    length = (programs.root[:, :, None] == lines).sum(1)  # [program, line]: how many lines lead to this one
    answer = programs.value[rows, queries]
    eligible = programs.is_constant & (lines >= 2) & (programs.value != answer[:, None])
    longest = length.argmax(1)
    alone = (length == length.max(1, keepdims=True)).sum(1) == 1
    tells = alone & eligible[rows, longest]
    others = eligible & (programs.value != programs.value[rows, longest][:, None])
    another = np.where(others, rng.random(others.shape), -1.0).argmax(1)
    return np.where(tells, longest, -1), np.where(others.any(1), another, -1)
