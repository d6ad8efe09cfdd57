"""Where a model of modular addition looks: does each position of the published circuit give its weight to the position it should?

Three looks make the circuit. In layer 1 `=` attends to the two operands (columns 13 and 14), and every number of the
prefix at the variable before it; in layer 2 `=` attends to the two numbers that the operands stand for. A look is *kept*
where the largest weights stand exactly there, and its *mass* is the weight they have together.

>>> looks = measure_looks(model, task, batch.tokens)
>>> looks.kept["values"].mean(), looks.mass["values"].mean()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bindscope.measures.arithmetic.forms import refuse_other_shapes
from bindscope.measures.arithmetic.reading import read_sums
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, N_PREFIX, OPERAND_POSITIONS

LOOKS = ("operands", "numbers", "values")
SITES = ("L0.H0.pattern", f"L1.H0.pattern@{ANSWER_POSITION}")


@dataclass(frozen=True, eq=False)
class Looks:
    """By the look's name, one number a sequence [batch]; of ``numbers`` the mean over the prefix's numbers."""

    kept: Mapping[str, np.ndarray]  # 1 where the largest weights are where they should be
    mass: Mapping[str, np.ndarray]  # the weight that is there
    equals: np.ndarray  # [batch, key]: what `=` gives to each column in layer 2


def measure_looks(model: Transformer, task: AssignAddTask, tokens: np.ndarray) -> Looks:
    """The three looks of a model over sequences [batch, 16]."""
    refuse_other_shapes(model)
    first, last = read_sums(model, tokens, SITES)
    first = first.reshape(len(tokens), tokens.shape[1], -1)  # [batch, query, key]
    equals = last.reshape(len(tokens), -1)  # [batch, key]
    operands = np.broadcast_to(OPERAND_POSITIONS, (len(tokens), 2))
    looks = {
        "operands": look_at(first[:, ANSWER_POSITION], operands),
        "numbers": _look_back(first, task, tokens),
        "values": look_at(equals, task.sequences.value_positions(tokens)),
    }
    return Looks({name: kept for name, (kept, _) in looks.items()}, {n: mass for n, (_, mass) in looks.items()}, equals)


def look_at(weights: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of weights [batch, key]: whether the two largest stand at ``columns`` [batch, 2], and how much stands there.

    >>> look_at(np.array([[0.1, 0.5, 0.4]]), np.array([[2, 1]]))
    (array([1.]), array([0.9]))
    """
    largest = np.sort(np.argsort(-weights, axis=1, kind="stable")[:, :2], axis=1)
    kept = (largest == np.sort(columns, axis=1)).all(1)
    return kept.astype(float), np.take_along_axis(weights, columns, 1).sum(1).astype(float)


def _look_back(pattern: np.ndarray, task: AssignAddTask, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of a pattern [batch, query, key]: how many of a sequence's assigned numbers attend to the token before them most."""
    assigned = tokens[:, :N_PREFIX] >= task.sequences.first_variable_token
    rows, variables = np.nonzero(assigned)  # a number stands after each assigned variable
    weights = pattern[rows, variables + 1]  # [number, key]
    n_numbers = np.maximum(assigned.sum(1), 1)
    hits = np.bincount(rows, weights.argmax(1) == variables, minlength=len(tokens))
    mass = np.bincount(rows, weights[np.arange(len(rows)), variables], minlength=len(tokens))
    return hits / n_numbers, mass / n_numbers
