"""What one step does to answers: sums of the study's own task, before and after, over the size of the step.

A step of size γ adds γ·(−∇W)/(2αελ/K), so that the theorem's associative memory enters with the weight γ. The MLP's
argmax does not depend on λ. Where several answers share the highest output (before the step all values get the same
attention), each is given equally often.

>>> tokens = sample_sums(AssignAddTask(31, 12), np.random.default_rng(0), 1000)
>>> accuracy_over_sizes(step.setting, step.gradient, tokens["2 unseen"], sizes=np.linspace(0, 1, 11))
"""

from __future__ import annotations

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.assign_add.sequence import N_PREFIX
from bindscope.tasks.assign_add.task import AssignAddTask
from bindscope.theory.one_step import Setting
from bindscope.theory.one_step_model import LITERAL_POSITION

SPLITS = {
    "1 seen": "1tr",
    "1 unseen": "1add",
    "2 seen": "2tr",
    "2 unseen": "2add",
}  # variables and pairs: the task's split
TIE = 1e-9  # outputs this near to the highest share it


def sample_sums(task: AssignAddTask, rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """tokens [row, 16] of each split, ``n`` rows: one variable and then a literal, or two variables; one to six
    variables are assigned, so most rows have values that nobody asks for.
    """
    if n < 1:
        raise BindscopeError(f"n: at least 1 sum must be drawn, got {n}.")
    return {name: _sample_split(task, rng, n, split) for name, split in SPLITS.items()}


def accuracy_over_sizes(setting: Setting, direction: np.ndarray, tokens: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The fraction of rows answered correctly after a step of each size along ``direction``: [size, row]."""
    model = setting.model
    embedded = model.embed(tokens)
    before = model.scores(setting.start, embedded)  # [row, position]
    change = model.scores(direction / unit_step(setting), embedded)
    answers = model.sequences.solve(tokens)
    return np.stack([_chance_of(model.outputs(before + size * change, tokens), answers) for size in sizes])


def unit_step(setting: Setting) -> float:
    """2αελ/K, what a step is measured in."""
    return 2 * setting.alpha * setting.epsilon * setting.scale / setting.n_variables


def count_assignments(modulus: int, tokens: np.ndarray) -> np.ndarray:
    """How many variables each row assigns, [row]."""
    return (tokens[:, :N_PREFIX] < modulus).sum(1)


def _sample_split(task: AssignAddTask, rng: np.random.Generator, n: int, split: str) -> np.ndarray:
    rows: list[np.ndarray] = []
    while sum(map(len, rows)) < n:
        tokens = task.sample_split(rng, 2 * n, split).tokens
        two_variables = split.startswith("2")
        rows.append(tokens if two_variables else tokens[tokens[:, LITERAL_POSITION] < task.modulus])
    return np.concatenate(rows)[:n]


def _chance_of(outputs: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """How likely each row's answer is among the highest outputs, [row]."""
    highest = outputs >= outputs.max(1, keepdims=True) * (1 - TIE)
    right = np.take_along_axis(highest, answers[:, None], 1)[:, 0]
    return right / highest.sum(1)
