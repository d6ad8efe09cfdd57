"""The whole model on every literal sum: n1 + n2 behind a prefix of PADs, all p² of them.

The prefix is the same for all, so the sums of one n1 stand behind it as blocks that do not see each other.

>>> sums = run_literal_sums(model, task)
>>> sums.pre[3, 40, 70]   # what neuron 70 of the last MLP is given for 3+40
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from bindscope.errors import BindscopeError
from bindscope.model.run import run, to_host
from bindscope.tasks.assign_add.sequence import N_POSITIONS, N_PREFIX
from bindscope.tasks.task import Layout

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.assign_add import AssignAddTask

N_SHARED = N_PREFIX + 1  # the PADs and the operator
N_BLOCK = N_POSITIONS - N_SHARED  # n1, n2 and the equals sign


@dataclass(frozen=True, eq=False)
class LiteralSums:
    """At the answer's position of every sum, by the two numbers."""

    residual: np.ndarray  # [n1, n2, d_model]: the residual stream that the last MLP reads
    pre: np.ndarray  # [n1, n2, neuron]: its pre-activations
    logits: np.ndarray  # [n1, n2, number]


def run_literal_sums(model: Transformer, task: AssignAddTask) -> LiteralSums:
    """Run the model on every pair of numbers."""
    if model.config.gated:
        raise BindscopeError("neurons are fitted where the activation alone follows them; this model's MLPs are gated.")
    tokens, layout, asked = _fraction_prefix(task)
    last = model.config.n_layers - 1
    sites = [f"L{last}.resid_mid", f"L{last}.pre"]
    with torch.no_grad():
        trace = run(model, torch.from_numpy(tokens), read=sites, layout=layout)
    return LiteralSums(
        *(to_host(values[:, asked]).double().numpy() for values in (*map(trace.__getitem__, sites), trace.logits))
    )


def literal_sums(task: AssignAddTask, pairs: np.ndarray) -> np.ndarray:
    """[pair, position]: the tokens of n1 + n2, each a sequence of its own, for pairs [pair, 2]."""
    sums = task.sequences
    tokens = np.full((len(pairs), N_POSITIONS), sums.pad_token, dtype=np.int64)
    tokens[:, N_PREFIX] = sums.operator_token
    tokens[:, N_SHARED : N_SHARED + 2] = pairs
    tokens[:, -1] = sums.equals_token
    return tokens


def _fraction_prefix(task: AssignAddTask) -> tuple[np.ndarray, Layout, np.ndarray]:
    """Tokens [n1, column] with a block for each n2, their layout, and the columns of the equals signs [n2]."""
    p = task.modulus
    pairs = np.indices((p, p)).reshape(2, -1).T
    sequences = literal_sums(task, pairs).reshape(p, p, N_POSITIONS)  # [n1, n2, position]
    blocks = sequences[:, :, N_SHARED:].reshape(p, p * N_BLOCK)
    layout = Layout(
        position_ids=np.concatenate([np.arange(N_SHARED), np.tile(np.arange(N_SHARED, N_POSITIONS), p)]),
        blocks=np.concatenate([np.zeros(N_SHARED, dtype=np.int64), np.repeat(np.arange(1, p + 1), N_BLOCK)]),
    )
    asked = N_SHARED + N_BLOCK * np.arange(1, p + 1) - 1
    return np.concatenate([sequences[:, 0, :N_SHARED], blocks], axis=1), layout, asked
