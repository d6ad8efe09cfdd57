"""The whole model on every literal sum: n1 + n2 behind a prefix of PADs, all p² of them.

>>> sums = run_literal_sums(model, task)
>>> sums.pre[3, 40, 70]   # what neuron 70 of the last MLP is given for 3+40
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from bindscope.model.run import run
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, N_POSITIONS, N_PREFIX, OPERAND_POSITIONS

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.assign_add import AssignAddTask

N_AT_ONCE = 1024  # sequences in one pass


@dataclass(frozen=True, eq=False)
class LiteralSums:
    """At the answer's place of every sum, by the two numbers."""

    residual: np.ndarray  # [n1, n2, d_model]: the stream that the last MLP reads
    pre: np.ndarray  # [n1, n2, neuron]: its pre-activations
    logits: np.ndarray  # [n1, n2, number]


def run_literal_sums(model: Transformer, task: AssignAddTask) -> LiteralSums:
    """Run the model on every pair of numbers."""
    tokens = torch.from_numpy(literal_sums(task))
    last = model.config.n_layers - 1
    sites = [f"L{last}.resid_mid@{ANSWER_POSITION}", f"L{last}.pre@{ANSWER_POSITION}"]
    found: list[tuple[np.ndarray, ...]] = []
    with torch.no_grad():
        for part in tokens.split(N_AT_ONCE):
            trace = run(model, part, read=sites)
            found.append(
                tuple(values[:, -1].double().numpy() for values in (*map(trace.__getitem__, sites), trace.logits))
            )
    shape = (task.modulus, task.modulus, -1)
    return LiteralSums(*(np.concatenate(parts).reshape(shape) for parts in zip(*found)))


def literal_sums(task: AssignAddTask) -> np.ndarray:
    """[pair, position]: the tokens of all sums of two numbers, n1 by n1."""
    sums = task.sequences
    tokens = np.full((task.modulus**2, N_POSITIONS), sums.pad_token, dtype=np.int64)
    tokens[:, N_PREFIX] = sums.operator_token
    tokens[:, OPERAND_POSITIONS] = np.indices((task.modulus, task.modulus)).reshape(2, -1).T
    tokens[:, ANSWER_POSITION] = sums.equals_token
    return tokens
