"""How one quantity goes as a power of another: the slope of their logarithms, by least squares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bindscope.intervals import student_quantile


class Power(NamedTuple):
    """y ∝ x^value, with a 95 % interval of the exponent; NaN where there are too few points."""

    value: float
    low: float
    high: float
    n: int
    centre: tuple[float, float] = (np.nan, np.nan)  # mean log x and mean log y, through which the line goes

    def at(self, x: np.ndarray) -> np.ndarray:
        """The fitted y."""
        return np.exp(self.centre[1] + self.value * (np.log(x) - self.centre[0]))


def fit_power(x: np.ndarray, y: np.ndarray) -> Power:
    """The exponent over points of positive x and y, with Student's interval.

    >>> fit_power(np.array([1, 2, 4]), np.array([3, 6, 12])).value
    1.0
    """
    log_x, log_y = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    n = len(log_x)
    if len(np.unique(log_x)) < 2 or n < 3:
        return Power(np.nan, np.nan, np.nan, n)
    spread = log_x - log_x.mean()
    value = float(spread @ log_y / (spread @ spread))
    rest = log_y - log_y.mean() - value * spread
    half = student_quantile(n - 2) * float(np.sqrt(rest @ rest / (n - 2) / (spread @ spread)))
    return Power(value, value - half, value + half, n, (float(log_x.mean()), float(log_y.mean())))
