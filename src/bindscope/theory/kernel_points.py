"""Quasi-random points: rank-1 lattices with random shifts, folded and mapped to independent Gaussians.

A lattice fills the cube far more evenly than random points do, and each random shift of it gives an unbiased estimate of
an integral; several independent shifts tell the error. The generating vectors are found component by component
(Sloan and Reztsov 2002), folding by the tent map makes smooth integrands periodic (Hickernell 2002).

>>> shifts = np.random.default_rng(0).random((4, 3))
>>> lattice_points(64, 3, shifts).shape  # [shift, point, dimension], in the cube
(4, 64, 3)
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

N_CANDIDATES = 256  # how many generators are tried for each dimension
TIE = 1e-11  # errors of generators that differ by less are equal: many are, by symmetry
EDGE = 1e-15  # Gaussians are cut where a coordinate comes this close to 0 or 1, at 8 standard deviations


def lattice_points(n_points: int, n_dimensions: int, shifts: np.ndarray) -> np.ndarray:
    """[…, point, dimension] in [0, 1): the lattice, moved by each of ``shifts`` […, dimension] and folded."""
    lattice = np.outer(np.arange(n_points), generating_vector(n_points, n_dimensions)) % n_points / n_points
    moved = shifts[..., None, :] + lattice
    moved -= np.floor(moved)
    return 1 - np.abs(2 * moved - 1)


@lru_cache(maxsize=256)
def generating_vector(n_points: int, n_dimensions: int) -> np.ndarray:
    """The lattice's step in each dimension, chosen one after the other for the least mean square error.

    The criterion is the worst-case error of functions with square-integrable mixed second derivatives; dimension j weighs
    1/j², so the ones that matter most should come first.
    """
    indices = np.arange(n_points)
    fractions = indices / n_points
    bernoulli = 2 * np.pi**2 * (fractions**2 - fractions + 1 / 6)
    candidates = _candidates(n_points)
    products, vector = np.ones(n_points), np.zeros(n_dimensions, dtype=np.int64)
    for dimension in range(n_dimensions):
        tried = candidates if dimension else candidates[:1]
        factors = 1 + bernoulli[tried[:, None] * indices % n_points] / (dimension + 1) ** 2  # [candidate, point]
        errors = factors @ products
        best = int((errors <= errors.min() * (1 + TIE)).argmax())  # the first of equals, however the sums are rounded
        vector[dimension] = tried[best]
        products = products * factors[best]
    vector.setflags(write=False)
    return vector


def _candidates(n_points: int) -> np.ndarray:
    """Steps that share no factor with the number of points, 1 first; a spread-out choice where there are many."""
    steps = np.arange(1, max(n_points // 2, 1) + 1)
    steps = steps[np.gcd(steps, n_points) == 1]
    if len(steps) <= N_CANDIDATES:
        return steps
    chosen = np.linspace(0, len(steps) - 1, N_CANDIDATES).round().astype(int)
    return steps[chosen]


def to_gaussian(points: np.ndarray) -> np.ndarray:
    """The standard normal quantile of every entry."""
    from scipy.special import ndtri

    quantiles: np.ndarray = ndtri(np.clip(points, EDGE, 1 - EDGE))
    return quantiles
