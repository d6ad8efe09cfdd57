"""Fractions with their counts and Wilson intervals, and means with theirs, as the variables of a dataset. A fraction of nothing is NaN, never 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bindscope.intervals import bootstrap_interval, wilson_interval

CONFIDENCE = 0.95
N_RESAMPLES = 400


def fraction_variables(name: str, dims: Sequence[str], hits: ArrayLike, n: ArrayLike) -> dict[str, Any]:
    """``NAME``, ``NAME_low`` and ``NAME_high`` over ``dims`` for counts of hits among counts of trials.

    >>> xr.Dataset(fraction_variables("accuracy", ["depth"], [8, 0], [10, 0])).accuracy.values
    array([0.8, nan])
    """
    hits, n = np.broadcast_arrays(np.asarray(hits, float), np.asarray(n, float))
    low, high = wilson_interval(hits, n, CONFIDENCE)
    fraction = hits / np.where(n > 0, n, 1)
    values = {"": fraction, "_low": low, "_high": high}
    return {
        f"{name}{suffix}": (tuple(dims), np.where(n > 0, value, np.nan), {"units": "fraction"})
        for suffix, value in values.items()
    }


def count_variable(dims: Sequence[str], counts: ArrayLike) -> Any:
    """A variable of counts over ``dims``."""
    return (tuple(dims), np.asarray(counts, np.int64), {"units": "question"})


def mean_variables(
    name: str, dims: Sequence[str], values: np.ndarray, rng: np.random.Generator, units: str = "1"
) -> dict[str, Any]:
    """``NAME``, ``NAME_low`` and ``NAME_high`` over ``dims``: means over the last axis with bootstrap intervals."""
    rows = values.reshape(-1, values.shape[-1])
    ends = np.array([bootstrap_interval(row, rng, n_resamples=N_RESAMPLES) for row in rows])
    ends = ends.reshape(*values.shape[:-1], 2)
    numbers = {"": values.mean(-1), "_low": ends[..., 0], "_high": ends[..., 1]}
    return {
        f"{name}{end}": (tuple(dims), np.asarray(number, np.float32), {"units": units})
        for end, number in numbers.items()
    }
