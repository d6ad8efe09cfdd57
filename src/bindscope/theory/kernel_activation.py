"""From the attention kernel to the transformer's: E[φ(a)φ(b)] for Gaussian (a, b) with K_attn as covariance.

The cosine cos(b₁t + b₂), relu and the identity have closed forms; any other function is integrated by Gauss–Hermite
quadrature in two dimensions, exact for smooth ones and good to 1e-3 or so for those with a kink.

>>> cosine = find_activation("cos", b1=1.0, b2=0.5)
>>> float(cosine.expect(np.array(1.0), np.array(1.0), np.array(0.5)))
0.363…
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from bindscope.errors import BindscopeError, name_nearest

N_NODES = 64
ENTRIES_AT_ONCE = 64  # kernel entries integrated together, each over N_NODES² nodes

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Activation:
    """A function of one number, applied to arrays, with the closed form of its kernel where there is one."""

    name: str
    function: Function
    closed_form: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] | None = None

    def expect(self, first: np.ndarray, second: np.ndarray, cross: np.ndarray) -> np.ndarray:
        """E[φ(a)φ(b)] for variances ``first`` and ``second`` and covariance ``cross``, entry by entry."""
        first, second, cross = np.broadcast_arrays(first, second, cross)
        if self.closed_form is not None:
            return self.closed_form(first, second, cross)
        return integrate_activation(self.function, first, second, cross)


def find_activation(activation: str | Function, b1: float = 1.0, b2: float = 0.5) -> Activation:
    """An activation by name, or made of any function of an array; b₁ and b₂ belong to ``cos``."""
    if callable(activation):
        return Activation(getattr(activation, "__name__", "function"), activation)
    if activation == "cos":
        return _cosine(b1, b2)
    if activation not in _NAMED:
        known = ("cos", *_NAMED)
        raise BindscopeError(
            f"activation: '{activation}' is unknown; use one of {', '.join(known)}.{name_nearest(activation, known)}"
        )
    return _NAMED[activation]


def integrate_activation(
    function: Function, first: np.ndarray, second: np.ndarray, cross: np.ndarray, n_nodes: int = N_NODES
) -> np.ndarray:
    """E[φ(a)φ(b)] by quadrature: a = √first·z₁ and b = √second·(ρz₁ + √(1 − ρ²)z₂)."""
    nodes, weights = gauss_hermite(n_nodes)
    shape = np.broadcast_shapes(first.shape, second.shape, cross.shape)
    entries = np.stack([np.broadcast_to(array, shape).reshape(-1) for array in (first, second, cross)])
    found = np.empty(entries.shape[1])
    for start in range(0, len(found), ENTRIES_AT_ONCE):
        part = slice(start, start + ENTRIES_AT_ONCE)
        left, right, product = np.sqrt(entries[0, part]), np.sqrt(entries[1, part]), entries[2, part]
        correlation = np.clip(product / np.maximum(left * right, np.finfo(float).tiny), -1, 1)
        rest = np.sqrt(1 - correlation**2)
        a = left[:, None] * nodes  # [entry, node]
        b = right[:, None, None] * (correlation[:, None, None] * nodes[:, None] + rest[:, None, None] * nodes)
        found[part] = np.einsum("en,enm,n,m->e", function(a), function(b), weights, weights, optimize=True)
    return found.reshape(shape)


@lru_cache(maxsize=16)
def gauss_hermite(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for a standard Gaussian; exact for polynomials of degree up to 2·n_nodes − 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    weights = weights / weights.sum()
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


def _cosine(b1: float, b2: float) -> Activation:
    def closed_form(first: np.ndarray, second: np.ndarray, cross: np.ndarray) -> np.ndarray:
        apart, together = first + second - 2 * cross, first + second + 2 * cross
        return (np.exp(-(b1**2) * apart / 2) + math.cos(2 * b2) * np.exp(-(b1**2) * together / 2)) / 2

    return Activation("cos", lambda t: np.cos(b1 * t + b2), closed_form)


def _relu_kernel(first: np.ndarray, second: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """The arc-cosine kernel of degree 1 (Cho and Saul 2009)."""
    size = np.sqrt(first * second)
    cosine = np.clip(cross / np.maximum(size, np.finfo(float).tiny), -1, 1)
    angle = np.arccos(cosine)
    return size * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)


def _gelu(t: np.ndarray) -> np.ndarray:
    return t * (1 + np.asarray(_erf(t / math.sqrt(2)), dtype=float)) / 2


_erf = np.frompyfunc(math.erf, 1, 1)
_NAMED = {
    "relu": Activation("relu", lambda t: np.maximum(t, 0), _relu_kernel),
    "gelu": Activation("gelu", _gelu),
    "tanh": Activation("tanh", np.tanh),
    "identity": Activation("identity", lambda t: t, lambda first, second, cross: cross * 1.0),
}
ACTIVATIONS = ("cos", *_NAMED)
