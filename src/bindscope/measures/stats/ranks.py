"""Do two numbers order the same things alike? Also where some are known by a bound only.

Kendall's τ is taken over pairs whose order is known for certain: of [low, high] that do not overlap.

>>> kendall(np.array([1.0, 2.0, 3.0]), [(10, 10), (30, 30), (64, np.inf)])
1.0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Bounds = tuple[float, float]
N_RESAMPLES, N_SHUFFLES = 1000, 1000
FEWEST_ITEMS = 5  # for a rank correlation


@dataclass(frozen=True)
class Rank:
    """Kendall's τ between a predictor and the n of half loss, over tasks."""

    predictor: str
    tau: float
    low: float  # of tasks drawn again
    high: float
    by_chance: float  # the fraction of orders of the tasks whose |τ| is as large
    n_tasks: int

    def __str__(self) -> str:
        return f"τ = {self.tau:.2f} [{self.low:.2f} to {self.high:.2f}], by chance {self.by_chance:.3f}"


def rank_tasks(predictor: str, predicted: Mapping[str, float], bounds: Mapping[str, Bounds]) -> Rank | None:
    """How well a number of each task orders the n it needs, over the tasks that have both; None where too few do."""
    names = [name for name in bounds if np.isfinite(predicted.get(name, np.inf))]
    if len(names) < FEWEST_ITEMS:
        return None
    values, rng = np.array([predicted[name] for name in names]), np.random.default_rng(0)
    signs = compare(np.stack([values, values], 1))
    order = compare(np.array([bounds[name] for name in names], float))
    tau = float(_tau(signs, order))
    if np.isnan(tau):
        return None
    drawn = rng.integers(len(names), size=(N_RESAMPLES, len(names)))
    low, high = np.nanquantile(_tau(_reorder(signs, drawn), _reorder(order, drawn)), [0.025, 0.975])
    shuffled = rng.permuted(np.tile(np.arange(len(names)), (N_SHUFFLES, 1)), axis=1)
    by_chance = np.mean(np.abs(_tau(_reorder(signs, shuffled), order)) >= abs(tau) - 1e-9)
    return Rank(predictor, tau, float(low), float(high), float(by_chance), len(names))


def kendall(values: np.ndarray, bounds: Sequence[Bounds]) -> float:
    """Kendall's τ between values and numbers that are known up to bounds."""
    return float(_tau(compare(np.stack([values, values], 1)), compare(np.array(bounds, float))))


def compare(bounds: np.ndarray) -> np.ndarray:
    """[item, other]: −1, 1 where one [low, high] lies below or above the other, 0 where that is not known (or equal)."""
    low, high = bounds.T
    above = low[:, None] >= high[None, :]
    below = high[:, None] <= low[None, :]
    return above.astype(float) - below.astype(float)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Spearman's, ties sharing their mean rank; 0 where one of them is constant.

    >>> rank_correlation([1, 2, 3], [10, 10, 30])
    0.866…
    """
    one, other = _mean_ranks(np.asarray(first, float)), _mean_ranks(np.asarray(second, float))
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _tau(signs: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Concordant minus discordant pairs, of those whose order is known on both sides, over [..., item, other]."""
    product = signs * order
    known = np.abs(product).sum((-2, -1))
    return np.where(known > 0, product.sum((-2, -1)) / np.maximum(known, 1), np.nan)


def _reorder(pairs: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """[item, other] with its items as each of rows [resample, item] has them."""
    return pairs[rows[:, :, None], rows[:, None, :]]


def _mean_ranks(values: np.ndarray) -> np.ndarray:
    unique, position = np.unique(values, return_inverse=True)
    counts = np.bincount(position, minlength=len(unique))
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[position]
