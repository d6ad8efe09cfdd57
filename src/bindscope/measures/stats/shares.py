"""Shares with their counts and Wilson intervals, as the variables of a dataset. A share of nothing is NaN, never 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bindscope.intervals import wilson_interval

CONFIDENCE = 0.95


def share_variables(name: str, dims: Sequence[str], hits: ArrayLike, n: ArrayLike) -> dict[str, Any]:
    """``NAME``, ``NAME_low`` and ``NAME_high`` over ``dims`` for counts of hits among counts of trials.

    >>> xr.Dataset(share_variables("accuracy", ["depth"], [8, 0], [10, 0])).accuracy.values
    array([0.8, nan])
    """
    hits, n = np.broadcast_arrays(np.asarray(hits, float), np.asarray(n, float))
    low, high = wilson_interval(hits, n, CONFIDENCE)
    share = hits / np.where(n > 0, n, 1)
    values = {"": share, "_low": low, "_high": high}
    return {
        f"{name}{suffix}": (tuple(dims), np.where(n > 0, value, np.nan), {"units": "share"})
        for suffix, value in values.items()
    }


def count_variable(dims: Sequence[str], counts: ArrayLike) -> Any:
    """A variable of counts over ``dims``."""
    return (tuple(dims), np.asarray(counts, np.int64), {"units": "question"})
