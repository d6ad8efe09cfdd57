"""A model of modular addition whose weights are written by hand: it routes and adds exactly as the published circuit does.

The residual stream is cut into orthogonal parts: tokens, positions, names that were copied, numbers that were fetched, answers.
Layer 1 copies each variable's name to the number behind it and the operands' names to `=`; layer 2 fetches numbers whose
copied name is asked for, or that stand in column 13 or 14; the MLP has one neuron for each pair of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
import torch

from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import find_preset
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.assign_add.sequence import N_PREFIX, OPERAND_POSITIONS, OPERATOR_POSITION

TASK = AssignAddTask(modulus=13, n_variables=6)
STRENGTH = 40.0  # of a score that decides
APART = 20.0  # how much a number that a neuron is not about holds it down


@dataclass(frozen=True)
class Parts:
    """Where each part of the residual stream begins."""

    task: AssignAddTask

    @property
    def positions(self) -> int:
        return len(self.task.vocabulary)

    @property
    def names(self) -> int:
        return self.positions + self.task.n_positions

    @property
    def fetched(self) -> int:
        return self.names + self.task.n_variables

    @property
    def answers(self) -> int:
        return self.fetched + self.task.modulus

    @property
    def width(self) -> int:
        return self.answers + self.task.modulus


def adder_config(task: AssignAddTask = TASK) -> ModelConfig:
    width = Parts(task).width
    n_pairs = task.modulus * (task.modulus + 1) // 2
    published = find_preset("assign-add").config.model
    sizes = {"d_vocab": len(task.vocabulary), "d_out": task.modulus, "d_model": width, "d_head": width}
    return replace(published, d_mlp=n_pairs, **sizes)


def construct_adder(task: AssignAddTask = TASK) -> Transformer:
    """Every sum answered correctly, every look kept, all weight there."""
    parts, sums = Parts(task), task.sequences
    model = Transformer(adder_config(task), torch.Generator().manual_seed(0)).eval()
    basis = np.eye(parts.width)
    forms = {name: np.zeros((parts.width, parts.width)) for name in ("qk1", "ov1", "qk2", "ov2")}
    for column in range(1, N_PREFIX):  # look at the token before
        forms["qk1"][parts.positions + column, parts.positions + column - 1] = STRENGTH
    for column in OPERAND_POSITIONS:
        forms["qk1"][parts.positions + column, parts.positions + OPERATOR_POSITION] = STRENGTH  # copies no name
        forms["qk1"][sums.equals_token, parts.positions + column] = STRENGTH
        forms["qk2"][sums.equals_token, parts.positions + column] = STRENGTH
    for number in range(task.modulus):
        forms["qk2"][sums.equals_token, number] = STRENGTH
        forms["ov2"][number, parts.fetched + number] = 1
    for variable in range(task.n_variables):
        name = parts.names + variable
        forms["ov1"][sums.first_variable_token + variable, name] = 1
        forms["qk2"][name, name] = 2 * STRENGTH  # half of each operand's name stands at `=`
    up, down = _pair_neurons(task, parts)
    with torch.no_grad():
        _write(model.W_E, basis[: len(task.vocabulary)])
        _write(model.pos_embed, basis[parts.positions : parts.positions + task.n_positions])
        _write(model.W_U, basis[:, parts.answers :])
        for layer, (qk, ov) in enumerate((("qk1", "ov1"), ("qk2", "ov2"))):
            attention = model.layers[layer].attention
            scaled = forms[qk] * model.config.d_head**0.5
            _write(attention.qkv.weight, np.concatenate([scaled.T, basis, forms[ov].T]))
            _write(attention.out.weight, basis)
        _write(model.layers[1].mlp.up.weight, up.T)
        _write(model.layers[1].mlp.down.weight, down.T)
    return model


def _pair_neurons(task: AssignAddTask, parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """A neuron a pair, silent where any other number was fetched; that of a double outweighs its neighbours'."""
    pairs = list(combinations_with_replacement(range(task.modulus), 2))
    up, down = np.zeros((parts.width, len(pairs))), np.zeros((len(pairs), parts.width))
    for neuron, (low, high) in enumerate(pairs):
        up[parts.fetched : parts.fetched + task.modulus, neuron] = -APART
        up[[parts.fetched + low, parts.fetched + high], neuron] = 1
        answer = int(task.sequences.combine(np.array(low), np.array(high)))
        down[neuron, parts.answers + answer] = 60.0 * (1 if low != high else 3)
    return up, down


def _write(weights: torch.Tensor, values: np.ndarray) -> None:
    weights.copy_(torch.from_numpy(values).to(weights.dtype))
