"""Losses whose learning coefficient (real log canonical threshold, RLCT) is known.

- ½ Σ w_i^{p_i} with even p_i: λ = Σ 1/p_i. A regular model, p_i = 2, has half its number of parameters.
- a deep linear network, ½ |W_M ⋯ W_1 − T|²: Aoyagi's theorem ("Consideration on the learning efficiency of multiple-layered
  neural networks with linear units", 2024), as written in Lau et al. (arXiv 2308.12108, appendix).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import ceil

from bindscope.errors import BindscopeError


def polynomial_coefficient(powers: Sequence[int]) -> float:
    """λ of ½ Σ w_i^{p_i}.

    >>> polynomial_coefficient([2, 4, 4])
    1.0
    """
    if any(power < 2 or power % 2 for power in powers):
        raise BindscopeError(f"powers: must be even and at least 2, got {list(powers)}.")
    return sum(1 / power for power in powers)


def linear_network_coefficient(widths: Sequence[int], rank: int) -> float:
    """λ of a linear network with ``widths`` from its inputs to its outputs, at weights whose product has ``rank``.

    With Δ_s = H_s − r, let Σ be the set of layers that satisfies, for ℓ = |Σ| − 1,

        max_Σ Δ < min_rest Δ,   Σ_Σ Δ ≥ ℓ max_Σ Δ,   Σ_Σ Δ < ℓ min_rest Δ;

    then, with M = ⌈Σ_Σ Δ/ℓ⌉ and a = Σ_Σ Δ − (M − 1) ℓ,

        λ = (r (H_1 + H_last) − r²)/2 + a (ℓ − a)/(4ℓ) − ℓ (ℓ − 1)/4 · (Σ_Σ Δ/ℓ)² + ½ Σ_{i<j in Σ} Δ_i Δ_j.

    >>> linear_network_coefficient([3, 4], 2)   # one matrix is a regular model: 12/2
    6.0
    >>> linear_network_coefficient([1, 1, 1], 0)   # ½ (w_1 w_2)²
    0.5
    """
    if len(widths) < 2 or not 0 <= rank <= min(widths):
        raise BindscopeError(f"linear network: widths {list(widths)} cannot have a product of rank {rank}.")
    deltas = sorted(width - rank for width in widths)
    chosen = _find_layers(deltas)
    total, length = sum(chosen), len(chosen) - 1
    a = total - (ceil(total / length) - 1) * length
    pairs = sum(left * right for left, right in combinations(chosen, 2))
    outer = (rank * (widths[0] + widths[-1]) - rank**2) / 2
    return outer + a * (length - a) / (4 * length) - length * (length - 1) / 4 * (total / length) ** 2 + pairs / 2


def _find_layers(deltas: Sequence[int]) -> list[int]:
    """The Δ of the set Σ: by its first condition it holds the smallest ones."""
    for count in range(2, len(deltas) + 1):
        chosen, rest = deltas[:count], deltas[count:]
        total, length = sum(chosen), count - 1
        apart = not rest or chosen[-1] < rest[0]
        if apart and total >= length * chosen[-1] and (not rest or total < length * rest[0]):
            return list(chosen)
    raise AssertionError("Aoyagi's theorem: such a set always exists")
