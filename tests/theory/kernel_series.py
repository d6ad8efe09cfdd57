"""The attention kernel κ(β, γ) as a power series around (0, 0): where two patterns of fresh symbols first meet.

Write S = XXᵀ, S′ = YYᵀ and G = XYᵀ, each [position, position], k positions, P = I − 11ᵀ/k. Derivatives at β = γ = 0:

    κ                = 1ᵀG1/k²
    ∂γ² κ            = 2/k
    ∂β²∂γ² κ         = 8 tr(G)/k² − 8·1ᵀG1/k³

Sequences without a common symbol (G = 0) meet later, in products of S and S′. All of ∂β⁴∂γ² κ is

    ∂β⁴∂γ² κ         = 48/k⁴ · (1ᵀSS′1 − 1ᵀS1·1ᵀS′1/k)            how often each position's symbol occurs, compared

which cannot tell patterns apart whose positions are all repeated equally often (AABB, ABAB). These meet in the part

    17280/k⁴ · tr(PSPS′)   of   ∂β⁶∂γ⁴ κ                           which positions are equal, compared

the rest of which depends on one pattern at a time wherever rows of S have equal sums. A common CLS token adds a meeting
without positions, 24/k⁴ · (1 − 1ᵀS1/k)(1 − 1ᵀS′1/k) in ∂β⁴ κ: how many positions are equal at all.

>>> round(derivative("ab", "cb", 2, 2), 9), known_derivative("ab", "cb", 2, 2)
(1.0, 1.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.theory.kernel import canonical_pair
from bindscope.theory.kernel_activation import gauss_hermite
from bindscope.theory.kernel_attention import mix_shared

MOST_NODES = 2**22
NODES_AT_ONCE = 2**14


def derivative(
    first: Sequence[str], second: Sequence[str], beta_order: int, gamma_order: int, cls: bool = False
) -> float:
    """∂^beta_order/∂β … ∂^gamma_order/∂γ … of κ at (0, 0), exact up to rounding.

    The coefficient of each power of β in softmax(βu) is a polynomial in the Gaussians, and Gauss–Hermite quadrature is
    exact for those; that coefficient of κ is in turn a polynomial in γ², found from its values at a few γ.
    """
    left, right = (np.array(sequence) for sequence in canonical_pair(first, second, cls))
    if beta_order % 2 or gamma_order % 2:
        return 0.0
    degree = beta_order // 2 + 1
    squares = np.linspace(0, 2, degree + 1)
    values = [_beta_coefficient(left, right, beta_order, np.sqrt(square)) for square in squares]
    coefficients = np.linalg.solve(np.vander(squares, increasing=True), values)
    found = coefficients[gamma_order // 2] if gamma_order // 2 <= degree else 0.0
    return float(found) * factorial(beta_order) * factorial(gamma_order)


def known_derivative(first: Sequence[str], second: Sequence[str], beta_order: int, gamma_order: int) -> float:
    """The closed forms above: (0, 0), (0, 2) and (2, 2) for any sequences, (4, 2) for those without a common symbol."""
    own, other, common = equality_matrices(first, second)
    k, order = len(own), (beta_order, gamma_order)
    if order == (0, 0):
        return float(common.sum()) / k**2
    if order == (0, 2):
        return 2 / k
    if order == (2, 2):
        return float(8 * np.trace(common) / k**2 - 8 * common.sum() / k**3)
    if order == (4, 2) and not common.any():
        return float(48 / k**4 * ((own @ other).sum() - own.sum() * other.sum() / k))
    raise BindscopeError(f"No closed form is known for the derivative {order} of these sequences; use derivative().")


def meeting_term(first: Sequence[str], second: Sequence[str], beta_order: int, gamma_order: int) -> float:
    """The part of a derivative that depends on both patterns of fresh symbols at once; see the module.

    (4, 0) is for a CLS token after both sequences, which counts as a position; (4, 2) and (6, 4) are for sequences alone.
    """
    ends = ["end"] if (beta_order, gamma_order) == (4, 0) else []
    own, other, _ = equality_matrices([*first, *ends], [*second, *ends])
    k = len(own)
    centre = np.eye(k) - 1 / k
    terms = {
        (4, 0): 24 * (1 - own.sum() / k) * (1 - other.sum() / k),
        (4, 2): 48 * (own.sum(0) @ centre @ other.sum(0)),
        (6, 4): 17280 * np.trace(centre @ own @ centre @ other),
    }
    if (beta_order, gamma_order) not in terms:
        known = ", ".join(map(str, terms))
        raise BindscopeError(f"Patterns are known to meet at orders {known}, not at {(beta_order, gamma_order)}.")
    return float(terms[beta_order, gamma_order]) / k**4


def equality_matrices(first: Sequence[str], second: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """XXᵀ, YYᵀ and XYᵀ, each [position, position]: 1 where the symbols are the same."""
    left, right = (np.array(sequence) for sequence in canonical_pair(first, second, cls=False))
    pairs = ((left, left), (right, right), (left, right))
    own, other, common = (np.equal(a[:, None], b[None, :]).astype(float) for a, b in pairs)
    return own, other, common


def _beta_coefficient(left: np.ndarray, right: np.ndarray, order: int, gamma: float) -> float:
    """The coefficient of β^order in κ(β, γ) for sequences of small integers."""
    n_symbols, k = int(max(left.max(), right.max())) + 1, len(left)
    common = np.equal(left[:, None], right[None, :]) + gamma**2 * np.eye(k)
    directions, sizes, _ = mix_shared(np.eye(n_symbols)[np.stack([left, right])], gamma)
    nodes, weights = _grid(len(sizes), order // 2 + 1)
    total = 0.0
    for start in range(0, len(nodes), NODES_AT_ONCE):
        part = slice(start, start + NODES_AT_ONCE)
        logits = (nodes[part] @ (directions * sizes).T).reshape(-1, 2, k)
        ours, theirs = (_expand_softmax(logits[:, side], order) for side in range(2))
        for power in range(order + 1):
            products = np.einsum("na,ab,nb->n", ours[power], common, theirs[order - power], optimize=True)
            total += float(products @ weights[part])
    return total


def _expand_softmax(logits: np.ndarray, order: int) -> list[np.ndarray]:
    """Coefficients of β⁰ … β^order in softmax(β·logits), each [node, position]."""
    exponential = [logits**power / factorial(power) for power in range(order + 1)]
    totals = [part.sum(1, keepdims=True) for part in exponential]
    found: list[np.ndarray] = []
    for power in range(order + 1):
        carried = sum(found[lower] * totals[power - lower] for lower in range(power))
        found.append((exponential[power] - carried) / totals[0])
    return found


def _grid(n_dimensions: int, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Product nodes [node, dimension] and weights [node] for independent standard Gaussians."""
    if n_nodes**n_dimensions > MOST_NODES:
        raise BindscopeError(
            f"This derivative needs {n_nodes}^{n_dimensions} nodes; use shorter sequences or a lower order in β."
        )
    nodes, weights = gauss_hermite(n_nodes)
    chosen = np.indices((n_nodes,) * n_dimensions).reshape(n_dimensions, n_nodes**n_dimensions)  # [dimension, node]
    return nodes[chosen].T, weights[chosen].prod(0)
