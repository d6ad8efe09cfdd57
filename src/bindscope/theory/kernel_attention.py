"""The attention kernel K_attn(X, Y) = E[softmax(βu)ᵀ (XYᵀ + γ²I) softmax(βv)], estimated with its error.

The Gaussians are u = Xw + γp and v = Yw + γp, with a number w for each symbol and p for each position, so a sequence has
the random features (attention on each symbol, γ · attention on each position) and K_attn is their mean product.

For templates with fresh symbols u and v share only p and the numbers of regular tokens. *Given those* they are
independent, and K_attn(i, j) is the mean of ⟨g_i, g_j⟩ with g_i the features' mean over the wildcards alone: an outer
lattice over what is shared, an inner one over wildcards, and all T² pairs cost T means. The inner means of both sides
come from independent points, so that the estimate has no bias; both use the same outer points, and every template the
same points, so that differences between templates are far more precise than the entries.

exp(β(w + γp)) is a product, so a softmax takes no exponential of its own, only sums of products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bindscope.theory.kernel_points import lattice_points, to_gaussian

ENTRIES_AT_ONCE = 200_000  # of an array; what fits a core's cache
RANK_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Sampling:
    """How finely to integrate: points over what is shared, over each side's wildcards, and independent repetitions."""

    n_outer: int
    n_inner: int
    n_randomisations: int


@dataclass(frozen=True, eq=False)
class AttentionMoments:
    """K_attn of templates in each randomisation: of a sequence with itself, and of two with no common symbol."""

    same: np.ndarray  # [randomisation, template]
    fresh: np.ndarray  # [randomisation, template, other]


def fresh_moments(
    codes: np.ndarray,
    n_wildcards: int,
    beta: float,
    gamma: float,
    sampling: Sampling,
    rng: np.random.Generator,
) -> AttentionMoments:
    """Both kinds of K_attn for templates [template, position] of wildcards 0 … n_wildcards − 1 and, above, shared tokens.

    >>> codes = np.array([[0, 0, 2], [0, 1, 2]])  # AA and AB, then CLS
    >>> fresh_moments(codes, 2, 3.0, 1.0, Sampling(256, 8, 4), rng).fresh.mean(0)
    array([[0.353…, 0.354…], [0.354…, 0.356…]])
    """
    integrand = _Integrand(codes, n_wildcards, beta, gamma)
    rank = integrand.mixing.shape[1]
    n_dimensions = rank + 2 * n_wildcards
    shifts = rng.random((sampling.n_randomisations, n_dimensions))
    same, fresh = [], []
    for shift in shifts:
        points = lattice_points(sampling.n_outer, n_dimensions, shift)  # [outer, dimension]
        parts = _split(points, sampling.n_inner * (len(codes) + n_wildcards + 1))
        estimates = [integrand.evaluate(part, sampling.n_inner) for part in parts]
        same.append(sum(estimate[0] for estimate in estimates) / sampling.n_outer)
        fresh.append(sum(estimate[1] for estimate in estimates) / sampling.n_outer)
    return AttentionMoments(np.array(same), np.array(fresh))


def sequence_moments(
    first: np.ndarray,
    second: np.ndarray,
    beta: float,
    gamma: float,
    sampling: Sampling,
    rng: np.random.Generator,
) -> AttentionMoments:
    """K_attn of every sequence of ``first`` [sequence, position] with every one of ``second``, which may share symbols.

    Symbols are small integers, the same in both. ``same`` is of ``first``, ``fresh`` is [randomisation, first, second].
    """
    n_symbols, n_positions = int(max(first.max(), second.max())) + 1, first.shape[1]
    n_points = sampling.n_outer * sampling.n_inner
    scales = beta * np.repeat([1, gamma], [n_symbols, n_positions])
    _, _, basis = mix_shared(np.eye(n_symbols)[np.concatenate([first, second])], gamma)
    same, crossed = [], []
    for shift in rng.random((sampling.n_randomisations, len(basis))):
        points = lattice_points(n_points, len(basis), shift)
        diagonal, cross = np.zeros(len(first)), np.zeros((len(first), len(second)))
        for part in _split(points, (len(first) + len(second)) * (n_symbols + n_positions)):
            weights = np.exp(scales * (to_gaussian(part) @ basis))  # [point, symbol … position]
            left, right = (_sequence_features(sequences, weights, n_symbols, gamma) for sequences in (first, second))
            diagonal += np.einsum("sf,sf->s", left, left)
            cross += left @ right.T
        same.append(diagonal / n_points)
        crossed.append(cross / n_points)
    return AttentionMoments(np.array(same), np.array(crossed))


def _sequence_features(sequences: np.ndarray, weights: np.ndarray, n_symbols: int, gamma: float) -> np.ndarray:
    """[sequence, point × (symbol, position)]: attention on each symbol and γ times that on each position."""
    features = np.empty((len(sequences), len(weights), weights.shape[1]))
    for row, sequence in enumerate(sequences):
        attention = weights[:, sequence] * weights[:, n_symbols:]  # [point, position]
        attention /= attention.sum(1, keepdims=True)
        features[row, :, :n_symbols] = attention @ np.eye(n_symbols)[sequence]
        features[row, :, n_symbols:] = gamma * attention
    return features.reshape(len(sequences), -1)


class _Integrand:
    """What is averaged over outer points: ‖features‖² of each template, and products of their inner means."""

    def __init__(self, codes: np.ndarray, n_wildcards: int, beta: float, gamma: float) -> None:
        self.n_wildcards, self.beta, self.gamma = n_wildcards, beta, gamma
        self.n_templates, self.n_positions = codes.shape
        self.stands_at = (codes[:, :, None] == np.arange(codes.max() + 1)).astype(float)  # [template, position, token]
        self.shared = self.stands_at[:, :, n_wildcards:]  # [template, position, shared token]
        self.kinds = np.concatenate(  # [template, position, wildcard …, whether the token is shared]
            [self.stands_at[:, :, :n_wildcards], (codes >= n_wildcards)[:, :, None]], axis=2
        )
        left, sizes, _ = mix_shared(self.shared, gamma)
        self.mixing = left * sizes  # [template × position, outer dimension]

    def evaluate(self, points: np.ndarray, n_inner: int) -> tuple[np.ndarray, np.ndarray]:
        """[template] and [template, other], summed over the points [outer, dimension]."""
        rank = self.mixing.shape[1]
        shared = np.exp(self.beta * (to_gaussian(points[:, :rank]) @ self.mixing.T))
        shared = shared.reshape(len(points), self.n_templates, self.n_positions)  # e^β(…) of the shared part
        totals = np.einsum("otp,tpk->otk", shared, self.kinds)
        squares = np.einsum("otp,tpk->otk", shared**2, self.kinds)
        by_token = np.einsum("otp,tpc->otc", shared, self.shared)
        second_moment = totals**2 + self.gamma**2 * squares
        second_moment[:, :, -1] = (by_token**2).sum(2) + self.gamma**2 * squares[:, :, -1]
        same, features = np.zeros(self.n_templates), []
        for side in range(2):
            start = rank + side * self.n_wildcards
            mean, mean_square = self._average(totals, points[:, start : start + self.n_wildcards], n_inner)
            same += (mean_square * second_moment).sum((0, 2)) / 2
            on_positions = np.einsum("otk,tpk->otp", mean, self.kinds) * shared
            features.append(np.concatenate([self.gamma * on_positions, mean[:, :, -1:] * by_token], axis=2))
        left, right = (feature.transpose(1, 0, 2).reshape(self.n_templates, -1) for feature in features)
        cross = left @ right.T
        return same, (cross + cross.T) / 2

    def _average(self, totals: np.ndarray, shifts: np.ndarray, n_inner: int) -> tuple[np.ndarray, np.ndarray]:
        """Means over wildcards of e^βw / (softmax's denominator) and of its square, [outer, template, kind].

        Each outer point has its own shift of the inner lattice.
        """
        wildcards = np.exp(self.beta * to_gaussian(lattice_points(n_inner, self.n_wildcards, shifts)))
        weights = np.concatenate([wildcards, np.ones((*wildcards.shape[:2], 1))], axis=2)  # [outer, inner, kind]
        inverse = 1 / (totals @ weights.transpose(0, 2, 1))  # [outer, template, inner]
        return inverse @ weights / n_inner, (inverse**2) @ (weights**2) / n_inner


def mix_shared(shared: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits' shared part as a mixture of as few Gaussians as it takes, largest first: its singular value decomposition.

    From [template, position, token] come [template × position, dimension], [dimension] and [dimension, token … position]. A
    softmax does not feel what is added to all its logits, so each template's mean over positions is taken away.
    """
    n_templates, n_positions, _ = shared.shape
    positions = np.broadcast_to(gamma * np.eye(n_positions), (n_templates, n_positions, n_positions))
    mixture = np.concatenate([shared, positions], axis=2)
    mixture = mixture - mixture.mean(1, keepdims=True)
    mixture = mixture.reshape(n_templates * n_positions, -1)
    left, sizes, _ = np.linalg.svd(mixture, full_matrices=False)
    sizes = sizes[: int((sizes > RANK_TOLERANCE).sum())]
    groups = np.split(np.arange(len(sizes)), np.flatnonzero(sizes[:-1] - sizes[1:] > RANK_TOLERANCE) + 1)
    left = np.concatenate([settle_basis(left[:, group]) for group in groups if len(group)] or [left[:, :0]], axis=1)
    return left, sizes, left.T @ mixture / sizes[:, None]


def settle_basis(vectors: np.ndarray) -> np.ndarray:
    """The same span with a basis of its own: vectors of equal singular values come out as the library that found them likes.

    Its projector does not depend on the basis; its columns, one after the other, are made orthogonal to those before.
    """
    rest, found = vectors @ vectors.T, []
    for _ in range(vectors.shape[1]):
        lengths = np.linalg.norm(rest, axis=0)
        column = rest[:, np.argmax(lengths > 0.5 * lengths.max())]
        found.append(column / np.linalg.norm(column))
        rest = rest - np.outer(found[-1], found[-1] @ rest)
    return np.stack(found, axis=1)


def _split(points: np.ndarray, width: int) -> Sequence[np.ndarray]:
    """Points in parts small enough to stay in the cache with ``width`` numbers for each."""
    return np.array_split(points, max(1, -(-len(points) * width // ENTRIES_AT_ONCE)))
