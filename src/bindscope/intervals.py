"""How sure a measured number is: intervals for fractions and for any statistic of a sample.

>>> low, high = wilson_interval(8, 10)
>>> round(float(low), 3), round(float(high), 3)
(0.49, 0.943)
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from bindscope.errors import BindscopeError


def wilson_interval(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """The lower and upper end of Wilson's score interval for a fraction, element by element.

    The set of fractions p that a normal test would not reject: (p̂ − p)² ≤ z² p(1 − p)/n (Wilson 1927). It stays inside
    [0, 1] and is honest at 0 % and 100 %, where trained models live. No trials tell nothing: the interval is [0, 1].
    """
    hits, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    if np.any(hits < 0) or np.any(hits > n):
        raise BindscopeError("wilson_interval: successes must lie between 0 and the number of trials.")
    z = normal_quantile(confidence)
    safe_n = np.where(n > 0, n, 1.0)
    fraction = hits / safe_n
    centre = (fraction + z**2 / (2 * safe_n)) / (1 + z**2 / safe_n)
    half = z / (1 + z**2 / safe_n) * np.sqrt(fraction * (1 - fraction) / safe_n + z**2 / (4 * safe_n**2))
    low = np.where(hits == 0, 0.0, np.clip(centre - half, 0.0, 1.0))  # exact at the ends, where rounding would leak
    high = np.where(hits == n, 1.0, np.clip(centre + half, 0.0, 1.0))
    return np.where(n > 0, low, 0.0), np.where(n > 0, high, 1.0)


def bootstrap_interval(
    sample: ArrayLike,
    rng: np.random.Generator,
    statistic: Callable[[np.ndarray], np.ndarray] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 2000,
) -> tuple[float, float]:
    """The percentile bootstrap interval of a statistic of one sample (Efron 1979); the mean when none is named.

    ``statistic`` maps ``[resample, item]`` to ``[resample]``: ``lambda x: np.median(x, axis=1)``.
    """
    values = np.asarray(sample, float)
    if values.ndim != 1 or len(values) == 0:
        raise BindscopeError(f"bootstrap_interval: need a flat sample of at least one value, got shape {values.shape}.")
    if n_resamples < 1:
        raise BindscopeError(f"bootstrap_interval: n_resamples must be at least 1, got {n_resamples}.")
    level, compute = _checked_confidence(confidence), statistic if statistic is not None else _mean
    if len(values) == 1:  # every resample is the sample
        return (only := float(compute(values[None])[0])), only
    drawn = values[rng.integers(0, len(values), (n_resamples, len(values)))]  # [resample, item]
    low, high = np.percentile(compute(drawn), [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)


def student_interval(sample: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval of the mean of a few independent values, such as what several seeds ended with.

    >>> tuple(round(end, 2) for end in student_interval([1.0, 2.0, 3.0]))
    (-0.48, 4.48)
    """
    values = np.asarray(sample, float)
    if values.ndim != 1 or len(values) < 2:
        raise BindscopeError(f"student_interval: need a flat sample of at least two values, got shape {values.shape}.")
    half = student_quantile(len(values) - 1, confidence) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def student_quantile(freedom: int, confidence: float = 0.95) -> float:
    """How far from 0 Student's t lies with this probability at most."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + _checked_confidence(confidence) / 2))


def normal_quantile(confidence: float) -> float:
    """How far from 0 a standard normal lies with this probability at most: 1.96 for 0.95."""
    return NormalDist().inv_cdf(0.5 + _checked_confidence(confidence) / 2)


def _mean(resamples: np.ndarray) -> np.ndarray:
    return resamples.mean(axis=1)


def _checked_confidence(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise BindscopeError(f"confidence: must lie strictly between 0 and 1, got {confidence}.")
    return confidence
