"""Which (variable, constant) combinations a model never meets in training."""

from __future__ import annotations

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.programs import Programs


def hold_out_combinations(n_variables: int, n_constants: int, fraction: float, seed: int) -> np.ndarray:
    """A mask [variable, constant] of held-out combinations, the same for the same arguments.

    Every variable keeps at least one constant and every constant at least one variable.

    >>> hold_out_combinations(26, 10, 0.1, seed=0).sum()
    26
    """
    held_out = np.zeros((n_variables, n_constants), bool)
    n_wanted = round(fraction * held_out.size)
    for combination in np.random.default_rng(seed).permutation(held_out.size):
        variable, constant = divmod(int(combination), n_constants)
        if held_out.sum() == n_wanted:
            break
        if held_out[variable].sum() < n_constants - 1 and held_out[:, constant].sum() < n_variables - 1:
            held_out[variable, constant] = True
    if held_out.sum() < n_wanted:
        raise BindscopeError(
            f"task.held_out: {fraction} of {held_out.size} combinations leaves a variable or a constant with none; "
            "use a smaller fraction."
        )
    return held_out


def answers_in(programs: Programs, combinations: np.ndarray) -> np.ndarray:
    """Lines [program, line] whose variable and value are one of ``combinations`` [variable, constant]."""
    return combinations[programs.variables, programs.value]


def roots_in(programs: Programs, combinations: np.ndarray) -> np.ndarray:
    """Lines [program, line] whose chain starts with a direct assignment that is one of ``combinations``."""
    root_variables = np.take_along_axis(programs.variables, programs.root, axis=1)
    return combinations[root_variables, programs.value]
