"""Known learning coefficients: Aoyagi's theorem against older formulas and values worked out by hand."""

from __future__ import annotations

import itertools

import pytest

from bindscope.errors import BindscopeError
from bindscope.theory.learning_coefficients import linear_network_coefficient, polynomial_coefficient


def reduced_rank(m: int, h: int, n: int, r: int) -> float:
    """The coefficient of reduced-rank regression, two matrices, as Aoyagi and Watanabe (2005) give it: four cases."""
    if n + r <= m + h and m + r <= n + h and h + r <= m + n:
        odd = (m + h + n + r) % 2
        return (-((h + r) ** 2) - m**2 - n**2 + 2 * (h + r) * (m + n) + 2 * m * n + odd) / 8
    if m + h < n + r:
        return (h * m - h * r + n * r) / 2
    if n + h < m + r:
        return (h * n - h * r + m * r) / 2
    return m * n / 2


def test_two_matrices_are_reduced_rank_regression():
    for m, h, n in itertools.product(range(1, 7), repeat=3):
        for r in range(min(m, h, n) + 1):
            assert linear_network_coefficient([m, h, n], r) == pytest.approx(reduced_rank(m, h, n, r)), (m, h, n, r)


def test_one_matrix_is_a_regular_model():
    for m, n in itertools.product(range(1, 6), repeat=2):
        assert {linear_network_coefficient([m, n], r) for r in range(min(m, n) + 1)} == {m * n / 2}


def test_values_that_can_be_worked_out_by_hand():
    assert linear_network_coefficient([1, 1, 1, 1, 1], 0) == 0.5  # ½ (w₁w₂w₃w₄)²: a normal crossing
    assert linear_network_coefficient([1, 9, 1], 0) == 0.5  # ½ (a·b)²: a is a regular function almost everywhere
    assert linear_network_coefficient([2, 1, 2], 1) == 1.5  # 2×2 matrices of rank 1 have three dimensions
    assert polynomial_coefficient([2] * 7) == 3.5
    assert polynomial_coefficient([4, 6]) == pytest.approx(1 / 4 + 1 / 6)


def test_more_layers_and_lower_rank_are_never_less_degenerate():
    for widths in itertools.product(range(2, 5), repeat=3):
        by_rank = [linear_network_coefficient(widths, r) for r in range(min(widths) + 1)]
        assert by_rank == sorted(by_rank)
        assert by_rank[-1] <= widths[0] * widths[-1] / 2


@pytest.mark.parametrize("asked", [([2, 2], 3), ([2], 1), ([3, 3], -1)])
def test_networks_that_cannot_be_are_refused(asked):
    with pytest.raises(BindscopeError, match="cannot have a product of rank"):
        linear_network_coefficient(*asked)


def test_an_odd_power_has_no_minimum():
    with pytest.raises(BindscopeError, match="even"):
        polynomial_coefficient([2, 3])
