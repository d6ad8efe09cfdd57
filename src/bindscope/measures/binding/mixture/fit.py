"""The mixture's weights and width by maximum likelihood, with bootstrap intervals and the distance from what was seen.

    p(answer) = Σ_k w_k q_k(answer),   w_k ≥ 0, Σ_k w_k = 1,   q_positional of width σ

For a given σ the weights are found by expectation maximisation, which only rises and has one maximum, as the likelihood is
concave in them; σ is the best of ``SIGMAS``. Resamples of whole pairs are fitted together, each with its own σ. An
interval is never narrower than Wilson's for a fraction of as many pairs, since at 0 and 1 resampling knows no doubt.

How far the fit is from what was seen is judged on pairs it was not fitted to: two halves, each fitted and each judged by the
other, as the Jensen–Shannon distance (√ of the divergence in bits: 0 the same, 1 nothing in common) of the distributions over
``categorise``'s categories. The same of one half's answers and the other's is the noise floor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bindscope.intervals import wilson_interval
from bindscope.measures.binding.mixture.likelihood import ACCOUNT_OF, ACCOUNTS, COMPONENTS, Components, n_categories

SIGMAS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # lines; the first is a point, wider than the last is nearly uniform
N_ITERATIONS = 150
N_RESAMPLES = 100
CONVERGED, LEAST, UNEXPLAINED = 1e-5, 1e-12, 1e-6


@dataclass(frozen=True, eq=False)
class Fit:
    """Weights by account [account], the width of the positional one, and how well the mixture describes the answers."""

    weights: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sigma: float
    distance: float  # Jensen–Shannon, on pairs that were not fitted
    floor: float  # of one half's answers from the other's
    without: np.ndarray  # [account]: the distance of a fit that has to do without it


def fit_mixture(components: Components, outcomes: np.ndarray, rng: np.random.Generator) -> Fit:
    """The mixture that makes ``outcomes`` [pair] most likely."""
    n = len(outcomes)
    half = (np.arange(n) % 2 == 0).astype(float)
    halves = np.tile([half, 1 - half], (1 + len(ACCOUNTS), 1))  # each with every account, then without each
    resampled = rng.multinomial(n, np.full(n, 1 / n), N_RESAMPLES).astype(float)
    counts = np.concatenate([np.ones((1, n)), halves, resampled])  # [sample, pair]
    may = np.ones((len(counts), len(COMPONENTS)), bool)
    for account in range(len(ACCOUNTS)):
        may[3 + 2 * account : 5 + 2 * account] = account != ACCOUNT_OF
    weights, sigmas = maximise(components, outcomes, counts, may)
    by_account = sum_accounts(weights)  # [sample, account]
    found = by_account[0]
    low, high = np.quantile(by_account[-N_RESAMPLES:], [0.025, 0.975], axis=0)
    least, most = wilson_interval(np.clip(found * n, 0, n), n)
    judged = [
        judge_halves(components, outcomes, half > 0, weights[at : at + 2], sigmas[at : at + 2])
        for at in range(1, 1 + len(halves), 2)
    ]
    floor = jensen_shannon(*(count_categories(components, outcomes, rows) for rows in (half > 0, half == 0)))
    return Fit(
        found, np.minimum(low, least), np.maximum(high, most), float(sigmas[0]), judged[0], floor, np.array(judged[1:])
    )


def maximise(
    components: Components, outcomes: np.ndarray, counts: np.ndarray, may: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Weights [sample, component] and σ [sample] for pairs that count as often as ``counts`` [sample, pair] says.

    ``may`` [sample, component] marks what may get a weight; default: all.
    """
    rows, n_samples = np.arange(len(outcomes)), len(counts)
    start = np.ones((n_samples, len(COMPONENTS))) if may is None else may.astype(float)
    best, sigmas, weights = np.full(n_samples, -np.inf), np.zeros(n_samples), np.zeros_like(start)
    for sigma in SIGMAS:
        likely = components.at(sigma)[rows, outcomes].round(9)  # [pair, component]
        distinct, which = np.unique(likely, axis=0, return_inverse=True)
        grouped = counts @ (which.reshape(-1, 1) == np.arange(len(distinct)))  # [sample, distinct row]
        found, height = _expectation_maximisation(distinct, grouped, start)
        better = height > best + 1e-9
        best[better], weights[better], sigmas[better] = height[better], found[better], sigma
    return weights, sigmas


def _expectation_maximisation(
    likely: np.ndarray, counts: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights [sample, component] and log-likelihoods [sample], from likelihoods [row, component] and counts [sample, row].

    A row that no component with a weight explains costs log 10⁻⁶ and says nothing about the others.
    """
    weights = start / start.sum(1, keepdims=True)
    for _ in range(N_ITERATIONS):
        before = weights
        mixed = np.maximum(weights @ likely.T, LEAST)  # [sample, row]
        weights = weights * ((counts / mixed) @ likely)
        weights = weights / np.maximum(weights.sum(1, keepdims=True), LEAST)
        if np.abs(weights - before).max() < CONVERGED:
            break
    height = (counts * np.log(np.maximum(weights @ likely.T, UNEXPLAINED))).sum(1)
    return weights, height


def sum_accounts(weights: np.ndarray) -> np.ndarray:
    """Weights of components [..., component] as those of accounts [..., account]."""
    return weights @ (ACCOUNT_OF[:, None] == np.arange(len(ACCOUNTS)))


def judge_halves(
    components: Components, outcomes: np.ndarray, half: np.ndarray, weights: np.ndarray, sigmas: np.ndarray
) -> float:
    """The mean distance of each half's fit, weights [2, component] and σ [2], from the other half's answers."""
    distances = []
    for fitted, judged in enumerate((~half, half)):
        predicted = predict_categories(components, weights[fitted], float(sigmas[fitted]), judged)
        distances.append(jensen_shannon(predicted, count_categories(components, outcomes, judged)))
    return float(np.mean(distances))


def count_categories(components: Components, outcomes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The distribution [category] of the answers to these pairs."""
    seen = components.category[np.flatnonzero(rows), outcomes[rows]]
    found: np.ndarray = np.bincount(seen, minlength=n_categories()) / len(seen)
    return found


def predict_categories(components: Components, weights: np.ndarray, sigma: float, rows: np.ndarray) -> np.ndarray:
    """The distribution [category] that a mixture gives answers to these pairs."""
    some = components.take(np.flatnonzero(rows))
    mass = some.at(sigma) @ weights  # [pair, outcome]
    found = np.bincount(some.category.ravel(), mass.ravel(), n_categories())
    return found / max(found.sum(), LEAST)


def jensen_shannon(first: np.ndarray, second: np.ndarray) -> float:
    """The Jensen–Shannon distance of two distributions, between 0 and 1.

    >>> jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    1.0
    """
    middle = (first + second) / 2

    def divergence(part: np.ndarray) -> float:
        known = (part > 0) & (middle > 0)  # half of the least number there is rounds to 0
        return float((part[known] * np.log2(part[known] / middle[known])).sum())

    return float(np.sqrt(max(0.0, (divergence(first) + divergence(second)) / 2)))
