"""Where in a sweep a model begins to succeed: a logistic curve fitted to the accuracies of its runs.

Accuracy at x is floor + (ceiling − floor) · σ((x − t) / w). The floor is chance and known; the threshold t, the width w
and the ceiling are those of greatest likelihood on a grid, every run counted once however many sums it was asked.
The interval comes from drawing the runs again: what one run more or less would change.

>>> fit_threshold(dataset.pair_fraction_of_each_run, dataset.accuracy_of_each_run, floor=1 / 59)
Threshold(value=0.42, low=0.4, high=0.45, …)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bindscope.errors import BindscopeError

N_MIDDLES, N_RISES, N_CEILINGS = 141, 15, 6  # how fine the grid is
LEAST_CEILING = 0.5
BEYOND = 0.2  # thresholds may lie this fraction of the swept range outside of it, but not below 0
N_REFINED = 9  # on either axis, between the neighbours of the best curve of the grid
RISE = 2 * np.log(9)  # widths that the curve takes from 10 % to 90 % of its way
SMALLEST_FRACTION = 1e-3  # no answer is held to be surer than this, or a single mistake would rule a curve out
FEWEST_VALUES = 4
AT_ONCE = 100  # resamples whose likelihoods are in memory together


@dataclass(frozen=True)
class Threshold:
    """A fitted curve. ``low`` and ``high`` hold 95 % of the resampled thresholds."""

    value: float
    low: float
    high: float
    rise: float  # how far it is from 10 % to 90 % of the way
    rise_low: float
    rise_high: float
    floor: float
    ceiling: float
    n_runs: int

    def curve(self, values: np.ndarray) -> np.ndarray:
        """The fitted accuracy at ``values``."""
        return logistic_curve(values, self.value, self.rise, self.floor, self.ceiling)


def fit_threshold(
    values: np.ndarray, accuracies: np.ndarray, floor: float, n_resamples: int = 400, seed: int = 0
) -> Threshold:
    """The threshold in ``accuracies`` of runs whose setting had ``values``; runs without an accuracy do not count.

    A rise that is steeper than the distance between the values swept cannot be located within that gap: the interval
    then covers it.
    """
    values, accuracies = _known(values, accuracies)
    grid = _Grid.over(values)
    likelihoods = grid.likelihoods(values, accuracies, floor)  # [run, curve]
    fine = grid.around(int(likelihoods.sum(0).argmax()))
    value, rise, ceiling = fine.curve(int(fine.likelihoods(values, accuracies, floor).sum(0).argmax()))
    resampled = _resample(likelihoods, n_resamples, np.random.default_rng(seed))  # [resample]: indices of curves
    low, high = (float(end) for end in np.percentile(grid.middles[resampled], (2.5, 97.5)))
    rise_low, rise_high = (float(end) for end in np.percentile(grid.rises[resampled], (2.5, 97.5)))
    left, right = _gap_around(np.unique(values), value)
    if rise < right - left:
        low, high = min(low, left), max(high, right)
    return Threshold(
        value=value,
        low=min(low, value),
        high=max(high, value),
        rise=rise,
        rise_low=min(rise_low, rise),
        rise_high=max(rise_high, rise),
        floor=floor,
        ceiling=ceiling,
        n_runs=len(values),
    )


def logistic_curve(
    values: np.ndarray, middle: np.ndarray | float, rise: np.ndarray | float, floor: float, ceiling: np.ndarray | float
) -> np.ndarray:
    """floor + (ceiling − floor) · σ((values − position) / w), where ``rise`` = 2 ln 9 · w.

    >>> logistic_curve(np.array([0.5]), middle=0.5, rise=0.1, floor=0.0, ceiling=1.0)
    array([0.5])
    """
    exponent = np.clip((values - middle) * RISE / rise, -50, 50)
    return floor + (ceiling - floor) / (1 + np.exp(-exponent))


def fraction_of_shuffles(
    values: np.ndarray, accuracies: np.ndarray, floor: float, n_shuffles: int = 200, seed: int = 0
) -> float:
    """In how many random orders of the same accuracies a curve fits at least as well as in their own.

    >>> fraction_of_shuffles(values, accuracies, floor=1 / 59)
    0.0
    """
    values, accuracies = _known(values, accuracies)
    rng = np.random.default_rng(seed)
    orders = np.stack([accuracies, *(rng.permutation(accuracies) for _ in range(n_shuffles))])  # [order, run]
    right, wrong = _Grid.over(values).log_fractions(values, floor)  # [run, curve]
    best = (orders @ (right - wrong) + wrong.sum(0)).max(1)  # [order]
    return float(np.mean(best[1:] >= best[0]))


def straight_line(values: np.ndarray, accuracies: np.ndarray) -> np.ndarray:
    """What runs would score if accuracy grew evenly, from the mean at the smallest value to the mean at the largest."""
    ends = [float(np.nanmean(accuracies[values == end])) for end in (values.min(), values.max())]
    return np.interp(values, (values.min(), values.max()), ends)


@dataclass(frozen=True, eq=False)
class _Grid:
    """All curves that are compared: [curve] each."""

    middles: np.ndarray
    rises: np.ndarray
    ceilings: np.ndarray

    @staticmethod
    def over(values: np.ndarray) -> _Grid:
        """Thresholds in and around the values, from jumps to rises longer than the sweep."""
        first, last = float(values.min()), float(values.max())
        span = last - first
        return _Grid.of(
            np.linspace(max(first - BEYOND * span, 0.0), last + BEYOND * span, N_MIDDLES),
            np.geomspace(span / 50, 3 * span, N_RISES),
            np.linspace(LEAST_CEILING, 1, N_CEILINGS),
        )

    @staticmethod
    def of(middles: np.ndarray, rises: np.ndarray, ceilings: np.ndarray) -> _Grid:
        return _Grid(*(axis.ravel() for axis in np.meshgrid(middles, rises, ceilings, indexing="ij")))

    def curve(self, index: int) -> tuple[float, float, float]:
        return float(self.middles[index]), float(self.rises[index]), float(self.ceilings[index])

    def around(self, index: int) -> _Grid:
        """A finer grid between the neighbours of one curve."""
        middle, rise, ceiling = self.curve(index)
        step = float(np.diff(np.unique(self.middles)).max())
        factor = float(self.rises.max() / self.rises.min()) ** (1 / (N_RISES - 1))
        ceiling_step = (1 - LEAST_CEILING) / (N_CEILINGS - 1)
        ceilings = np.linspace(ceiling - ceiling_step, ceiling + ceiling_step, N_REFINED)
        return _Grid.of(
            np.linspace(middle - step, middle + step, N_REFINED),
            np.geomspace(rise / factor, rise * factor, N_REFINED),
            np.unique(np.clip(ceilings, LEAST_CEILING, 1)),
        )

    def log_fractions(self, values: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
        """The logarithm of a right answer's probability under each curve, and of a wrong one's: [run, curve]."""
        expected = logistic_curve(values[:, None], self.middles, self.rises, floor, self.ceilings)
        expected = np.clip(expected, SMALLEST_FRACTION, 1 - SMALLEST_FRACTION)
        return np.log(expected), np.log1p(-expected)

    def likelihoods(self, values: np.ndarray, accuracies: np.ndarray, floor: float) -> np.ndarray:
        """The log-likelihood of each run under each curve, for one question a run: [run, curve]."""
        right, wrong = self.log_fractions(values, floor)
        return accuracies[:, None] * right + (1 - accuracies[:, None]) * wrong


def _known(values: np.ndarray, accuracies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, accuracies = np.asarray(values, dtype=float).ravel(), np.asarray(accuracies, dtype=float).ravel()
    known = np.isfinite(values) & np.isfinite(accuracies)
    values, accuracies = values[known], accuracies[known]
    if len(np.unique(values)) < FEWEST_VALUES:
        raise BindscopeError(
            f"a threshold needs runs at {FEWEST_VALUES} values or more, and there are {len(np.unique(values))}."
        )
    return values, accuracies


def _resample(likelihoods: np.ndarray, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """The best curve of each of many draws of as many runs, with replacement: [resample]."""
    n_runs = len(likelihoods)
    counts = rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=n_resamples).astype(float)  # [resample, run]
    parts = [counts[start : start + AT_ONCE] @ likelihoods for start in range(0, n_resamples, AT_ONCE)]
    return np.concatenate([part.argmax(1) for part in parts])


def _gap_around(values: np.ndarray, middle: float) -> tuple[float, float]:
    """The neighbouring values between which a middle lies; the middle itself outside of all of them."""
    index = int(np.searchsorted(values, middle))
    if index in (0, len(values)):
        return middle, middle
    return float(values[index - 1]), float(values[index])
