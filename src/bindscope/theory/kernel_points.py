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
    places = np.arange(n_points)
    fractions = places / n_points
    bernoulli = 2 * np.pi**2 * (fractions**2 - fractions + 1 / 6)
    candidates = _candidates(n_points)
    products, vector = np.ones(n_points), np.zeros(n_dimensions, dtype=np.int64)
    for dimension in range(n_dimensions):
        tried = candidates if dimension else candidates[:1]
        factors = 1 + bernoulli[tried[:, None] * places % n_points] / (dimension + 1) ** 2  # [candidate, point]
        best = int((factors @ products).argmin())
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
    """The standard normal quantile of every entry, to 1e-15 or so (Wichura 1988, algorithm AS 241)."""
    points = np.clip(points, EDGE, 1 - EDGE)
    centred = points - 0.5
    remainder = 0.180625 - centred * centred
    quantiles = centred * _ratio(remainder, _CENTRE)
    is_tail = remainder < 0
    if is_tail.any():
        side = points[is_tail]
        depth = np.sqrt(-np.log(np.minimum(side, 1 - side)))
        size = np.where(depth <= 5, _ratio(depth - 1.6, _TAIL), _ratio(depth - 5, _FAR_TAIL))
        quantiles[is_tail] = np.copysign(size, side - 0.5)
    return quantiles


def _ratio(at: np.ndarray, coefficients: tuple[tuple[float, ...], tuple[float, ...]]) -> np.ndarray:
    numerator, denominator = (np.full_like(at, part[0]) for part in coefficients)
    for above, below in zip(coefficients[0][1:], coefficients[1][1:]):
        numerator *= at
        numerator += above
        denominator *= at
        denominator += below
    return numerator / denominator


# Wichura's rational approximations: numerator and denominator, highest power first
_CENTRE = (
    (
        2509.0809287301227,
        33430.57558358813,
        67265.7709270087,
        45921.95393154987,
        13731.69376550946,
        1971.5909503065513,
        133.14166789178438,
        3.3871328727963665,
    ),
    (
        5226.495278852854,
        28729.085735721943,
        39307.89580009271,
        21213.794301586597,
        5394.196021424751,
        687.1870074920579,
        42.31333070160091,
        1.0,
    ),
)
_TAIL = (
    (
        0.0007745450142783414,
        0.022723844989269184,
        0.2417807251774506,
        1.2704582524523684,
        3.6478483247632045,
        5.769497221460691,
        4.630337846156546,
        1.4234371107496835,
    ),
    (
        1.0507500716444169e-09,
        0.0005475938084995345,
        0.015198666563616457,
        0.14810397642748008,
        0.6897673349851,
        1.6763848301838038,
        2.053191626637759,
        1.0,
    ),
)
_FAR_TAIL = (
    (
        2.0103343992922881e-07,
        2.7115555687434876e-05,
        0.0012426609473880784,
        0.026532189526576124,
        0.29656057182850487,
        1.7848265399172913,
        5.463784911164114,
        6.657904643501103,
    ),
    (
        2.0442631033899397e-15,
        1.421511758316446e-07,
        1.8463183175100548e-05,
        0.0007868691311456133,
        0.014875361290850615,
        0.1369298809227358,
        0.599832206555888,
        1.0,
    ),
)
