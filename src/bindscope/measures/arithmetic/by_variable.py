"""Sums with one variable by which variable it is and where it stands, and how = attends to the two operands.

>>> sums = ask_by_variable(task, rng, n=50)
>>> right_by_variable(model, sums, task)   # hits and counts over (variable, operand)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, OPERAND_POSITIONS
from bindscope.tasks.task import Batch

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

OPERANDS = ("first", "second")
N_WATCHED = 200  # sums over which the attention of = is averaged


def ask_by_variable(task: AssignAddTask, rng: np.random.Generator, n: int) -> Batch:
    """Sums of one variable and one number, about ``n`` for each variable as each operand, pairs as in training."""
    n_restricted = int((~shown_in_training(task)).sum())
    splits = {"1tr": n * (2 * task.n_variables - n_restricted), "1var": n * n_restricted}
    tokens = [task.sample_split(rng, size, name).tokens for name, size in splits.items()]
    return task.to_batch(np.concatenate(tokens))


def ask_one_variable(task: AssignAddTask, rng: np.random.Generator, n: int, variable: int, operand: str) -> Batch:
    """``n`` sums of one variable as one operand and a number as the other."""
    shown = shown_in_training(task)
    trained = bool(shown[variable, OPERANDS.index(operand)])
    n_groups = int(shown.sum()) if trained else int((~shown).sum())
    found, n_found = [], 0
    while n_found < n:
        batch = task.sample_split(rng, 2 * n * n_groups, "1tr" if trained else "1var")
        found.append(batch.tokens[batch.labels[f"{operand}_variable"][:, 0] == variable])
        n_found += len(found[-1])
    return task.to_batch(np.concatenate(found)[:n])


def shown_in_training(task: AssignAddTask) -> np.ndarray:
    """Whether training shows a variable as an operand: [variable, operand] bool."""
    allowed = (task.allowed_first, task.allowed_second)
    return np.array([[variable in shown for shown in allowed] for variable in range(task.n_variables)])


def right_by_variable(model: Transformer, sums: Batch, task: AssignAddTask) -> tuple[np.ndarray, np.ndarray]:
    """How many sums were answered correctly, and of how many: [variable, operand] each."""
    from bindscope.measures.evaluation import read_answers

    right = read_answers(model, sums).argmax(1) == sums.targets[:, 0]  # [sum]
    hits, n = np.zeros((2, task.n_variables, len(OPERANDS)), int)
    for index, name in enumerate(OPERANDS):
        variable = sums.labels[f"{name}_variable"][:, 0]  # −1 where a number stands
        here = variable >= 0
        hits[:, index] = np.bincount(variable[here], right[here], task.n_variables)
        n[:, index] = np.bincount(variable[here], minlength=task.n_variables)
    return hits, n


def look_at_operands(model: Transformer, sums: Batch, task: AssignAddTask) -> tuple[np.ndarray, np.ndarray]:
    """For positions 13 and 14: how = at 15 scores them in layer 1 by position alone, and how much it attends to them.

    The first is (e_= + P_15)·QK1·P_jᵀ, missing in models of another shape; the second a mean over sums.
    """
    import torch

    from bindscope.measures.arithmetic.forms import SumForms
    from bindscope.model.run import run, to_host

    try:
        forms = SumForms.of(model, task)
        asking = forms.equals + forms.positions[ANSWER_POSITION]
        score = asking @ forms.qk1 @ forms.positions[list(OPERAND_POSITIONS)].T
    except BindscopeError:
        score = np.full(len(OPERAND_POSITIONS), np.nan)
    with torch.no_grad():
        site = f"L0.pattern@{ANSWER_POSITION}"
        rows = torch.from_numpy(sums.tokens[:: max(1, len(sums) // N_WATCHED)])
        pattern = run(model, rows, read=[site], layout=sums.layout)[site]  # [row, head, 1, key]
    return score, to_host(pattern)[:, :, 0, list(OPERAND_POSITIONS)].mean((0, 1)).numpy()
