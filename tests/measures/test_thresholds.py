"""Thresholds are found where simulated sweeps have them, and not where they have none."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.measures.stats.thresholds import RISE, fit_threshold, fraction_of_shuffles, logistic_curve, straight_line

VALUES = np.repeat(np.linspace(0.06, 0.99, 20), 3)  # three runs a value
CHANCE = 1 / 59


def simulate(middle: float, rise: float, ceiling: float = 1.0, certainty: float = 60.0, seed: int = 0) -> np.ndarray:
    """Accuracies of runs that scatter around a known curve."""
    curve = np.clip(logistic_curve(VALUES, middle, rise, CHANCE, ceiling), 1e-3, 1 - 1e-3)
    return np.random.default_rng(seed).beta(certainty * curve, certainty * (1 - curve))


def test_the_curve_is_halfway_at_its_threshold_and_rises_from_a_tenth_to_nine_tenths_as_said():
    at = logistic_curve(np.array([0.3, 0.4, 0.5]), middle=0.4, rise=0.2, floor=0.0, ceiling=1.0)
    np.testing.assert_allclose(at, (0.1, 0.5, 0.9))
    assert pytest.approx(4.394, abs=1e-3) == RISE


@pytest.mark.parametrize(("middle", "rise", "ceiling"), [(0.25, 0.1, 1.0), (0.42, 0.2, 0.9), (0.7, 0.35, 1.0)])
def test_a_known_threshold_is_found(middle, rise, ceiling):
    fitted = fit_threshold(VALUES, simulate(middle, rise, ceiling), CHANCE, n_resamples=100)
    assert fitted.value == pytest.approx(middle, abs=0.02)
    assert fitted.rise == pytest.approx(rise, rel=0.4)
    assert fitted.ceiling == pytest.approx(ceiling, abs=0.051)
    assert fitted.low <= fitted.value <= fitted.high


def test_the_interval_holds_the_known_threshold_about_as_often_as_it_says():
    fits = [fit_threshold(VALUES, simulate(0.42, 0.25, certainty=15, seed=seed), CHANCE, 200) for seed in range(20)]
    held = sum(fitted.low <= 0.42 <= fitted.high for fitted in fits)
    assert held >= 16
    assert all(fitted.high - fitted.low < 0.15 for fitted in fits)  # and not because it holds everything


def test_runs_that_scatter_more_give_a_wider_interval():
    calm, wild = (fit_threshold(VALUES, simulate(0.5, 0.2, certainty=certainty), CHANCE) for certainty in (500, 5))
    assert wild.high - wild.low > 2 * (calm.high - calm.low)


def test_a_jump_between_two_values_is_located_no_finer_than_they_are_apart():
    fitted = fit_threshold(VALUES, np.where(VALUES > 0.5, 1.0, 0.0), CHANCE, n_resamples=20)
    swept = np.unique(VALUES)
    assert fitted.low <= swept[swept < 0.5].max()
    assert fitted.high >= swept[swept > 0.5].min()


def test_a_straight_line_has_no_steep_rise_and_a_flat_one_no_threshold_inside():
    even = fit_threshold(VALUES, straight_line(VALUES, simulate(0.4, 0.1)), CHANCE, n_resamples=20)
    assert even.rise > 0.7 * (VALUES.max() - VALUES.min())
    for level in (0.99, CHANCE):
        flat = fit_threshold(VALUES, np.full(len(VALUES), level), CHANCE, n_resamples=20)
        assert not VALUES.min() < flat.value < VALUES.max()


def test_shuffled_runs_are_told_from_ordered_ones():
    ordered = simulate(0.4, 0.1)
    assert fraction_of_shuffles(VALUES, ordered, CHANCE) == 0
    mixed = np.random.default_rng(3).permutation(ordered)
    assert fraction_of_shuffles(VALUES, mixed, CHANCE) > 0.05


def test_runs_that_have_not_ended_do_not_count():
    accuracies = simulate(0.4, 0.1)
    some = accuracies.copy()
    some[::3] = np.nan
    kept = np.isfinite(some)
    assert fit_threshold(VALUES, some, CHANCE, 20) == fit_threshold(VALUES[kept], accuracies[kept], CHANCE, 20)


def test_too_few_values_are_refused():
    with pytest.raises(BindscopeError, match="4 values or more, and there are 3"):
        fit_threshold(np.array([0.1, 0.5, 0.9]), np.array([0.0, 0.5, 1.0]), CHANCE)
