"""At which n does a curve over n cross a level? With an interval where seeds are known, and a bound where it never does.

>>> crossing = find_crossing(np.array([8, 16, 32]), [(0.9, 1.0), (0.7, 0.8), (0.1, 0.2)], last_above(0.5))
>>> str(crossing)
'21 [20–23]'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

Find = Callable[[np.ndarray, np.ndarray], np.ndarray]  # n and means [resample, n] → crossings [resample]
N_RESAMPLES = 1000


@dataclass(frozen=True)
class Crossing:
    """The n at which a curve crosses a level; its ends are drawn from the seeds again.

    ``n`` is 0 where the curve lies below the level from its smallest n on, and infinite where it never gets there: then
    only a bound is known, and ``bounds`` tells it.
    """

    n: float
    low: float | None
    high: float | None
    smallest: int
    largest: int
    resamples: np.ndarray = field(repr=False, compare=False)  # n of every resample of the seeds; none of one seed

    @property
    def censored(self) -> Literal["below", "above"] | None:
        """On which side of the trained n it lies, if it is not among them."""
        return "below" if self.n == 0 else "above" if np.isinf(self.n) else None

    @property
    def bounds(self) -> tuple[float, float]:
        """What n surely lies between, by the means alone: (n, n), (0, smallest] or (largest, ∞)."""
        if self.censored == "below":
            return 0.0, float(self.smallest)
        return (float(self.largest), np.inf) if self.censored == "above" else (self.n, self.n)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The interval, cut at the trained n."""
        if self.low is None or self.high is None:
            return None, None
        return max(self.low, self.smallest), min(self.high, self.largest)

    def __str__(self) -> str:
        ends = "" if self.low is None or self.high is None else f" [{self._show(self.low)}–{self._show(self.high)}]"
        return f"{self._show(self.n)}{ends if self.censored is None else ''}"

    def _show(self, n: float) -> str:
        if n == 0:
            return f"≤ {self.smallest:,}"
        return f"> {self.largest:,}" if np.isinf(n) else f"{n:,.0f}"


def find_crossing(
    n: np.ndarray, seeds: Sequence[Sequence[float]], find: Find, rng: np.random.Generator | None = None
) -> Crossing:
    """Where the means of ``seeds``, a sample at each of the sizes ``n``, cross; with the interval of seeds drawn again."""
    generator = rng if rng is not None else np.random.default_rng(0)
    low = high = None
    resamples = np.empty(0)
    if min(len(sample) for sample in seeds) > 1:
        drawn = [generator.choice(sample, (N_RESAMPLES, len(sample))).mean(1) for sample in seeds]
        resamples = find(n, np.stack(drawn, 1))
        low, high = (float(np.quantile(resamples, tail, method="nearest")) for tail in (0.025, 0.975))
    means = np.array([float(np.asarray(sample).mean()) for sample in seeds])
    return Crossing(float(find(n, means[None])[0]), low, high, int(n[0]), int(n[-1]), resamples)


def ratio_of(larger: Crossing, smaller: Crossing) -> tuple[float, float | None, float | None]:
    """How many times as large one n is as another, with a 95 % interval where both have one.

    Where an n is censored its bound is taken, the one that makes the ratio smaller: it is then *at least* this.
    """
    top, bottom = larger.bounds[0], smaller.bounds[1]
    value = top / bottom if bottom > 0 else np.inf
    if not len(larger.resamples) or not len(smaller.resamples):
        return value, None, None
    tops = np.where(np.isinf(larger.resamples), larger.largest, larger.resamples)
    bottoms = np.where(smaller.resamples == 0, smaller.smallest, smaller.resamples)
    low, high = np.quantile(tops / bottoms, [0.025, 0.975])
    return float(value), float(low), float(high)


def last_above(level: float) -> Find:
    """Where means cross the level for the last time, interpolated in log n."""
    return partial(_interpolate, level=level)


def _interpolate(n: np.ndarray, means: np.ndarray, level: float) -> np.ndarray:
    """0 where means [resample, n] are always below the level, infinite where they end above it."""
    above = means > level
    last = np.where(above.any(1), means.shape[1] - 1 - above[:, ::-1].argmax(1), 0)
    after, rows = np.minimum(last + 1, means.shape[1] - 1), np.arange(len(means))
    drop = means[rows, last] - means[rows, after]
    way = (means[rows, last] - level) / np.where(drop > 0, drop, 1)
    crossed = np.exp(np.log(n[last]) + way * (np.log(n[after]) - np.log(n[last])))
    return np.where(above[:, -1], np.inf, np.where(above.any(1), crossed, 0.0))
