"""Sequences from operands and numbers: what surrounds a sum is drawn, and the whole becomes a batch."""

from __future__ import annotations

import numpy as np

from bindscope.tasks.assign_add.placement import N_SOURCES, NUMBER_SOURCES, PAD_SOURCE, SUM_SOURCES, VARIABLE_SOURCES
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, MAX_ASSIGNMENTS, N_POSITIONS, SequenceFormat
from bindscope.tasks.task import Batch, Layout

LITERAL = -1  # stands for "a number, not a variable" wherever a variable's index is expected


def draw_sources(
    rng: np.random.Generator, sequences: SequenceFormat, operands: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """What the columns choose from [source, batch]: a PAD, six distinct variables and their numbers, the sum.

    The first operand that is a variable is assigned by assignment 0, a second one by assignment 1.
    """
    n_examples = len(operands)
    first, second = operands.astype(np.int16).T.copy()  # [batch]; small integers compare fast
    n1, n2 = values[:, 0], values[:, 1]
    has_first, has_second = first != LITERAL, second != LITERAL
    variables = _draw_variables(rng, n_examples, sequences.n_variables)  # [assignment, batch]
    numbers = rng.integers(sequences.modulus, size=(MAX_ASSIGNMENTS, n_examples))  # [assignment, batch]
    variables = _bring_forward(variables, 0, np.where(has_first, first, second), has_first | has_second)
    variables = _bring_forward(variables, 1, second, has_first & has_second)
    numbers[0] = np.where(has_first, n1, np.where(has_second, n2, numbers[0]))
    numbers[1] = np.where(has_first & has_second, n2, numbers[1])
    sources = np.empty((N_SOURCES, n_examples), dtype=np.int64)
    sources[PAD_SOURCE] = sequences.pad_token
    np.add(variables, sequences.first_variable_token, out=sources[VARIABLE_SOURCES])
    sources[NUMBER_SOURCES] = numbers
    operator, first_operand, second_operand, equals = sources[SUM_SOURCES]
    operator[:], equals[:] = sequences.operator_token, sequences.equals_token
    first_operand[:] = np.where(has_first, sources[VARIABLE_SOURCES.start], n1)
    second_operand[:] = np.where(has_second, second + np.int64(sequences.first_variable_token), n2)
    return sources


def make_batch(
    tokens: np.ndarray,
    operands: np.ndarray,
    values: np.ndarray,
    answers: np.ndarray,
    n_variables: np.ndarray,
    n_assignments: np.ndarray,
    swap_seen: np.ndarray | None,
) -> Batch:
    halves = {} if swap_seen is None else {"swap_seen": swap_seen[:, None]}
    return Batch(
        tokens=tokens,
        layout=Layout(position_ids=np.arange(N_POSITIONS)),
        target_positions=np.array([ANSWER_POSITION]),
        targets=answers[:, None],
        labels={
            "n1": values[:, 0:1],
            "n2": values[:, 1:2],
            "n_variables": n_variables[:, None],
            "n_assignments": n_assignments[:, None],
            "first_variable": operands[:, 0:1],
            "second_variable": operands[:, 1:2],
            **halves,
        },
    )


def _draw_variables(rng: np.random.Generator, n_examples: int, n_variables: int) -> np.ndarray:
    """Six distinct variables for each example, in random order [assignment, batch].

    Sorts random numbers that carry a variable's index in their lowest five bits, which is faster than argsort. With
    fewer than six variables the last assignments hold no real ones; no placement uses them.
    """
    n_columns = max(n_variables, MAX_ASSIGNMENTS)
    keys = rng.integers(1 << 32, size=(n_examples, n_columns), dtype=np.uint32)
    keys[:, n_variables:] = (1 << 32) - 1
    keys &= np.uint32((1 << 32) - 32)
    keys |= np.arange(n_columns, dtype=np.uint32)
    keys.sort(axis=1)
    return (keys[:, :MAX_ASSIGNMENTS].T & 31).astype(np.int16, order="C")


def _bring_forward(variables: np.ndarray, index: int, wanted: np.ndarray, applies: np.ndarray) -> np.ndarray:
    """The variables [assignment, batch] with ``wanted`` at ``index``, exchanged with what stood there."""
    displaced = variables[index]
    wanted = np.where(applies, wanted, displaced)
    exchanged = np.where(variables == wanted, displaced, variables)
    exchanged[index] = wanted
    return exchanged
