"""A model of modular addition whose weights are written by hand, so that every measure of it is known."""

from __future__ import annotations

import numpy as np

from bindscope.measures.arithmetic.forms import SumForms
from bindscope.tasks.assign_add import AssignAddTask

TASK = AssignAddTask(modulus=5, n_variables=4)
STRONG = 40.0


def written_forms(
    previous: float = STRONG, copies: bool = True, forgotten: tuple[int, ...] = (), broken_pair: bool = False
) -> SumForms:
    """Numbers look one back and take over the variable's name; ``=`` finds the names again; one neuron adds each pair.

    ``forgotten`` variables match the next one instead of themselves; ``broken_pair`` takes away the neurons of 1 + 2.
    """
    p, k = TASK.modulus, TASK.n_variables
    n_tokens, n_positions = p + 3 + k, 16
    basis = np.eye(n_tokens + n_positions + k)
    tokens, positions, names = np.split(basis, [n_tokens, n_tokens + n_positions])
    equals, variables = tokens[p + 1], tokens[p + 3 :]
    operands = positions[13] + positions[14]
    qk1 = previous * sum(np.outer(positions[i], positions[i - 1]) for i in range(1, 12)) + STRONG * np.outer(
        equals, operands
    )
    partner = [(j + 1) % k if j in forgotten else j for j in range(k)]
    qk2 = STRONG * sum(np.outer(names[j], names[partner[j]]) for j in range(k))
    qk2 = qk2 + STRONG * np.outer(equals, operands) - STRONG * np.outer(equals, variables.sum(0))
    ov1 = variables.T @ names if copies else np.zeros_like(basis)
    up, down = _adder(broken_pair)
    width = len(basis)
    return SumForms(
        numbers=tokens[:p],
        operator=tokens[p],
        equals=equals,
        pad=tokens[p + 2],
        variables=variables,
        positions=positions,
        qk1=qk1,
        ov1=ov1,
        qk2=qk2,
        ov2=np.eye(width),
        up=np.pad(up, ((0, width - p), (0, 0))),
        down=np.pad(down, ((0, 0), (0, width - p))),
        unembed=np.eye(width)[:, :p],
    )


def _adder(broken_pair: bool) -> tuple[np.ndarray, np.ndarray]:
    """One neuron a pair: on for its two numbers, off for all others; doubled numbers speak louder."""
    p = TASK.modulus
    up, down = np.full((p, p * p), -1.0), np.zeros((p * p, p))
    for first in range(p):
        for second in range(p):
            up[[first, second], first * p + second] = 1.0
            down[first * p + second, (first + second) % p] = 100.0 if first == second else 1.0
            if broken_pair and {first, second} == {1, 2}:
                down[first * p + second] = 0.0
    return up, down
