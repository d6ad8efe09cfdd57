"""The series of the attention kernel: its exact derivatives against finite differences and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.theory.kernel import KernelSettings, template_kernel
from theory.kernel_series import derivative, known_derivative, meeting_term


def integrate_attention(first, second, beta, gamma, n_nodes=10):
    """K_attn(β, γ) of two short sequences by Gauss–Hermite quadrature over every symbol and position."""
    symbols = sorted({*first, *second})
    x, y = (np.array([[a == b for b in symbols] for a in sequence], float) for sequence in (first, second))
    nodes, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    grids = np.meshgrid(*[nodes] * (len(symbols) + len(first)), indexing="ij")
    z = np.stack([grid.reshape(-1) for grid in grids])
    weight = np.prod(np.meshgrid(*[weights / weights.sum()] * len(z), indexing="ij"), axis=0).reshape(-1)
    w, p = z[: len(symbols)].T, gamma * z[len(symbols) :].T
    s, t = np.exp(beta * (w @ x.T + p)), np.exp(beta * (w @ y.T + p))
    s, t = s / s.sum(1, keepdims=True), t / t.sum(1, keepdims=True)
    return weight @ (s @ (x @ y.T + gamma**2 * np.eye(len(first))) * t).sum(1)


def contrast(function, first, second):
    """What depends on both patterns at once: f(1,1) − f(1,2) − f(2,1) + f(2,2)."""
    (a, b), (c, d) = first, second
    return function(a, c) - function(a, d) - function(b, c) + function(b, d)


@pytest.mark.parametrize(("first", "second"), [("ab", "cb"), ("aa", "ab"), ("ab", "ba"), ("aa", "bb")])
def test_the_series_sums_to_the_kernel(first, second):
    beta, gamma = 0.12, 0.5
    total = sum(
        derivative(first, second, m, n)
        * beta**m
        * gamma**n
        / np.prod([*range(1, m + 1), *range(1, n + 1)], dtype=float)
        for m in (0, 2, 4)
        for n in (0, 2, 4, 6)
    )
    exact = integrate_attention(first, second, beta, gamma)
    assert abs(total - exact) < 1e-6  # what β⁶ leaves
    assert abs(derivative(first, second, 0, 0) + gamma**2 * derivative(first, second, 0, 2) / 2 - exact) > 1e-6


def test_second_derivatives_are_finite_differences():
    step = 0.05

    def value(beta, gamma):
        return integrate_attention("ab", "cb", beta, gamma)

    gammas = [[value(b, g) for g in (step, 0)] for b in (step, 0)]
    mixed = 4 * (gammas[0][0] - gammas[0][1] - gammas[1][0] + gammas[1][1]) / step**4
    assert mixed == pytest.approx(derivative("ab", "cb", 2, 2), rel=0.02)


@pytest.mark.parametrize(
    ("first", "second"), [("ab", "cb"), ("aab", "aba"), ("abc", "bca"), ("aab", "cdc"), ("aa", "aa")]
)
def test_the_first_derivatives_have_closed_forms(first, second):
    for order in ((0, 0), (0, 2), (2, 2)):
        assert derivative(first, second, *order) == pytest.approx(known_derivative(first, second, *order), abs=1e-12)
    assert derivative(first, second, 3, 2) == 0


@pytest.mark.parametrize(
    "patterns", [("aab", "cdc"), ("aab", "cdd"), ("aaa", "cdd"), ("aabc", "defd"), ("abab", "cccd")]
)
def test_fresh_patterns_meet_at_the_fourth_order_with_both_terms(patterns):
    found = derivative(*patterns, 4, 2)
    assert found == pytest.approx(known_derivative(*patterns, 4, 2), abs=1e-10)
    assert found == pytest.approx(meeting_term(*patterns, 4, 2), abs=1e-10)


def test_the_first_term_alone_is_not_the_whole_derivative():
    k, rows = 3, np.array([2, 2, 1])
    assert derivative("aab", "ccd", 4, 2) == pytest.approx(48 / k**4 * (rows @ rows - rows.sum() ** 2 / k))
    assert abs(derivative("aab", "ccd", 4, 2) - 48 / k**4 * (rows @ rows)) > 1


def test_equally_repeated_patterns_meet_only_at_the_sixth_order():
    first, second = ("aabb", "abab"), ("ccdd", "cdcd")
    for order in ((4, 2), (6, 2)):
        assert contrast(lambda x, y, order=order: derivative(x, y, *order), first, second) == pytest.approx(0, abs=1e-9)
    wanted = contrast(lambda x, y: meeting_term(x, y, 6, 4), first, second)
    assert wanted == pytest.approx(17280 / 4**4 * 8)
    assert contrast(lambda x, y: derivative(x, y, 6, 4), first, second) == pytest.approx(wanted, abs=1e-8)


def test_a_common_end_lets_patterns_meet_without_positions():
    first, second = ("aa", "ab"), ("cc", "cd")
    wanted = contrast(lambda x, y: meeting_term(x, y, 4, 0), first, second)
    assert wanted > 0.1
    assert contrast(lambda x, y: derivative(x, y, 4, 0, cls=True), first, second) == pytest.approx(wanted, abs=1e-10)
    assert contrast(lambda x, y: derivative(x, y, 4, 0), first, second) == pytest.approx(0, abs=1e-12)


def test_the_smallest_eigenvalue_falls_with_the_order_at_which_templates_meet():
    slopes = {}
    for templates in (("ABA", "ABB"), ("AABB", "ABAB")):
        small, large = (
            template_kernel(templates, KernelSettings(beta=beta, points=256)).eigenvalues.value[0]
            for beta in (0.1, 0.2)
        )
        slopes[templates[0]] = np.log2(large / small)
    assert slopes["ABA"] == pytest.approx(4, abs=0.3)
    assert slopes["AABB"] == pytest.approx(6, abs=0.5)


def test_orders_that_are_not_known_or_too_costly_are_refused():
    with pytest.raises(BindscopeError, match="No closed form"):
        known_derivative("ab", "ab", 4, 2)
    with pytest.raises(BindscopeError, match="known to meet"):
        meeting_term("ab", "cd", 2, 2)
    with pytest.raises(BindscopeError, match="shorter sequences"):
        derivative("abcdefgh", "ijklmnop", 6, 4)
