"""Waiting times of a few runs, some of which ended before what was waited for: how much longer one group waits.

A run that ends first is *right-censored*: its time is only known to lie beyond its end. Nothing is made up for it here.
Every ratio of two times is known between two numbers, which differ where a time is censored, and the interval is the
exact one of the rank test (Hodges and Lehmann 1963) with the least of its ratios taken for the lower end and the greatest
for the upper one: with censored times it can only become wider.

>>> slow, fast = Waits((8.0, 9.0, 12.0, 16.0), (16.0,) * 4), Waits((4.0, 5.0, 6.0, 7.0), (16.0,) * 4)
>>> compare_waits(slow, fast)
Ratio(lowest=2.0, highest=2.0, low=1.142…, high=4.0, p=0.028…)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from math import comb, inf, isfinite, sqrt

import numpy as np

from bindscope.errors import BindscopeError

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Waits:
    """How long each run took; infinite where it ended, after ``ends``, without getting there."""

    times: tuple[float, ...]
    ends: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.times) != len(self.ends):
            raise BindscopeError(f"waits: {len(self.times)} times but {len(self.ends)} ends; give each run both.")
        if any(not 0 < end < inf for end in self.ends) or any(not time > 0 for time in self.times):
            raise BindscopeError("waits: times and ends must be positive, and ends finite.")

    @cached_property
    def earliest(self) -> np.ndarray:
        """The least that each time can be: itself, or the end of its run."""
        return np.array([time if isfinite(time) else end for time, end in zip(self.times, self.ends)])

    @cached_property
    def latest(self) -> np.ndarray:
        return np.array(self.times, float)


@dataclass(frozen=True)
class Ratio:
    """How many times as long the first group waits: an estimate known to lie in lowest–highest, and its interval."""

    lowest: float
    highest: float
    low: float
    high: float
    p: float  # of the exact test that both wait alike


def compare_waits(first: Waits, second: Waits, confidence: float = CONFIDENCE) -> Ratio:
    """The median of all ratios first/second with its exact interval, if one group is the other times a factor.

    Groups too small for the confidence have the interval from 0 to infinity: three against three tell nothing at 95 %.
    """
    if not first.times or not second.times:
        raise BindscopeError("compare_waits: both groups need at least one run.")
    least = np.sort(np.divide.outer(first.earliest, second.latest).ravel())  # finite / infinite = 0
    greatest = np.sort(np.divide.outer(first.latest, second.earliest).ravel())
    low, high = _between_ends(least, greatest, interval_depth(len(first.times), len(second.times), confidence))
    return Ratio(_middle_ratio(least), _middle_ratio(greatest), low, high, rank_test(first, second))


def median_bounds(waits: Waits) -> tuple[float, float]:
    """Between what the median of all times is known to lie; both ends are the same where no censored time matters."""
    return _median(np.sort(waits.earliest)), _median(np.sort(waits.latest))


def median_interval(waits: Waits, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact interval of the median by order statistics, from 0 to infinity where there are too few runs.

    The d-th smallest and d-th greatest of n times hold the median between them unless fewer than d of n fair coins fall
    on one side; with six runs at 95 % these are the smallest and the greatest.
    """
    return _between_ends(np.sort(waits.earliest), np.sort(waits.latest), _coin_depth(len(waits.times), confidence))


def compare_pairs(first: Waits, second: Waits, confidence: float = CONFIDENCE) -> Ratio:
    """The median of the ratios first/second of runs that belong together, position by position, with the sign test's interval.

    For runs that share a seed, and with it their first weights and their examples: what a seed does to both cancels.
    """
    if len(first.times) != len(second.times) or not first.times:
        raise BindscopeError("compare_pairs: both groups need the same number of runs, at least one.")
    least, greatest = np.sort(first.earliest / second.latest), np.sort(first.latest / second.earliest)
    low, high = _between_ends(least, greatest, _coin_depth(len(least), confidence))
    longer, shorter = np.diagonal(_longer(first, second)), np.diagonal(_longer(second, first))
    n, fewer = int((longer | shorter).sum()), int(min(longer.sum(), shorter.sum()))
    p = min(1.0, 2 * sum(comb(n, heads) for heads in range(fewer + 1)) / 2**n)
    return Ratio(_middle_ratio(least), _middle_ratio(greatest), low, high, p)


def rank_test(first: Waits, second: Waits) -> float:
    """The exact two-sided p of Gehan's test: of all ways to deal the runs into two groups, how many differ as much?

    Each pair of runs counts +1, −1, or 0 where a censored time leaves open which was longer, or both are equal.
    """
    everyone = Waits((*first.times, *second.times), (*first.ends, *second.ends))
    longer = _longer(everyone, everyone)
    scores = (longer.astype(int) - longer.T.astype(int)).sum(1)  # of each run against all others
    seen = abs(scores[: len(first.times)].sum())
    dealt = [abs(sum(chosen)) for chosen in combinations(scores.tolist(), len(first.times))]
    return float(np.mean([each >= seen for each in dealt]))


def interval_depth(n_first: int, n_second: int, confidence: float = CONFIDENCE) -> int:
    """How many ratios from either end the interval's limits are; 0 where the groups are too small to have one.

    The greatest d for which the rank-sum statistic U of two groups alike is below d with a probability of at most
    (1 − confidence)/2.

    >>> interval_depth(4, 4), interval_depth(6, 6), interval_depth(3, 3)
    (1, 6, 0)
    """
    tail, depth = 0, 0
    allowed = (1 - confidence) / 2 * comb(n_first + n_second, n_first)
    for statistic in range(n_first * n_second // 2 + 1):
        tail += _n_orders(n_first, n_second, statistic)
        if tail > allowed + 1e-9:
            break
        depth = statistic + 1
    return depth


@cache
def _n_orders(n_first: int, n_second: int, statistic: int) -> int:
    """How many orders of the two groups have that many pairs with the first's run above the second's."""
    if statistic < 0:
        return 0
    if n_first == 0 or n_second == 0:
        return int(statistic == 0)
    # the greatest of all is of the first group, above every run of the second; or of the second, above none
    return _n_orders(n_first - 1, n_second, statistic - n_second) + _n_orders(n_first, n_second - 1, statistic)


def _coin_depth(n: int, confidence: float) -> int:
    """The greatest d for which fewer than d of n coins show heads with a probability of at most (1 − confidence)/2."""
    tail, depth = 0.0, 0
    for heads in range(n // 2):
        tail += comb(n, heads) / 2**n
        if tail > (1 - confidence) / 2:
            break
        depth = heads + 1
    return depth


def _between_ends(least: np.ndarray, greatest: np.ndarray, depth: int) -> tuple[float, float]:
    """The ``depth``-th of sorted values from below and from above; everything where there is no such depth."""
    return (float(least[depth - 1]), float(greatest[-depth])) if depth else (0.0, inf)


def _longer(first: Waits, second: Waits) -> np.ndarray:
    """Where a run of the first certainly took longer than one of the second, [first, second].

    It arrived later, or had not arrived when the other had.
    """
    censored = np.isinf(first.latest)[:, None]
    earliest, latest = first.earliest[:, None], second.latest[None, :]
    return np.asarray((earliest > latest) | (censored & (earliest >= latest)))


def _median(ordered: np.ndarray) -> float:
    """Of sorted times, of which some may be infinite."""
    low, high = _middle_pair(ordered)
    return (low + high) / 2


def _middle_ratio(ordered: np.ndarray) -> float:
    """The median of sorted ratios on a logarithmic scale, so that turning all of them upside down turns it too."""
    low, high = _middle_pair(ordered)
    return sqrt(low * high)


def _middle_pair(ordered: np.ndarray) -> tuple[float, float]:
    return float(ordered[(len(ordered) - 1) // 2]), float(ordered[len(ordered) // 2])
