"""How often a pattern would be found in the same evaluations if their order meant nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def fraction_of_shuffles(
    is_found: Callable[[np.ndarray], bool], n: int, n_shuffles: int, rng: np.random.Generator
) -> float:
    """In which fraction of random orders of ``n`` evaluations ``is_found(order)`` holds.

    >>> rising = np.array([0.1, 0.5, 0.9])
    >>> fraction_of_shuffles(lambda order: bool((np.diff(rising[order]) > 0).all()), 3, 600, np.random.default_rng(0))
    0.17
    """
    return float(np.mean([is_found(rng.permutation(n)) for _ in range(n_shuffles)]))
