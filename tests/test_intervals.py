"""Intervals against published values, their defining equation, and the coverage they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.intervals import bootstrap_interval, student_interval, student_quantile, wilson_interval

Z95 = 1.959963984540054


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),  # Newcombe 1998, table I, method 3
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_agrees_with_the_values_newcombe_published(successes, trials, low, high):
    found = wilson_interval(successes, trials)
    assert found == pytest.approx((low, high), abs=5e-5)


@given(trials=st.integers(1, 5000), data=st.data())
def test_the_ends_of_wilson_solve_the_score_equation(trials, data):
    successes = data.draw(st.integers(1, trials)) if trials > 1 else 1
    fraction = successes / trials
    for end in wilson_interval(successes, trials):
        assert (fraction - end) ** 2 == pytest.approx(Z95**2 * end * (1 - end) / trials, abs=1e-9)


@given(trials=st.integers(1, 5000), data=st.data())
def test_wilson_holds_the_fraction_lies_in_the_unit_interval_and_mirrors(trials, data):
    successes = data.draw(st.integers(0, trials))
    low, high = wilson_interval(successes, trials)
    mirrored_low, mirrored_high = wilson_interval(trials - successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
    assert (low, high) == pytest.approx((1 - mirrored_high, 1 - mirrored_low), abs=1e-12)


def test_wilson_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    for truth in (0.05, 0.3, 0.9):
        low, high = wilson_interval(rng.binomial(200, truth, 20_000), 200)
        assert 0.93 < np.mean((low <= truth) & (truth <= high)) < 0.97


def test_nothing_observed_leaves_everything_possible():
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_wilson_refuses_more_successes_than_trials():
    with pytest.raises(BindscopeError, match="between 0 and the number of trials"):
        wilson_interval(5, 4)


def test_bootstrap_of_a_mean_matches_the_normal_interval_on_a_large_sample():
    rng = np.random.default_rng(1)
    sample = rng.normal(3.0, 2.0, 1000)
    low, high = bootstrap_interval(sample, rng, n_resamples=4000)
    half = Z95 * sample.std() / np.sqrt(len(sample))
    assert (low, high) == pytest.approx((sample.mean() - half, sample.mean() + half), abs=0.02)


def test_bootstrap_takes_any_statistic_and_repeats_with_the_same_generator():
    sample = np.arange(101.0)
    first = bootstrap_interval(sample, np.random.default_rng(5), lambda x: np.median(x, axis=1))
    again = bootstrap_interval(sample, np.random.default_rng(5), lambda x: np.median(x, axis=1))
    assert first == again
    assert first[0] < 50 < first[1]
    assert first[1] - first[0] > bootstrap_interval(sample, np.random.default_rng(5), confidence=0.5)[1] - 50


def test_bootstrap_draws_as_written_out_and_leaves_the_generator_there():
    """Whole items, with replacement, one row of indices a resample: what shipped intervals were drawn with."""
    sample, ours, plain = np.random.default_rng(2).normal(size=30), np.random.default_rng(7), np.random.default_rng(7)
    for statistic in (np.mean, np.median):
        found = bootstrap_interval(sample, ours, lambda x, of=statistic: of(x, axis=1), 0.9, n_resamples=500)
        resampled = statistic(sample[plain.integers(0, 30, (500, 30))], axis=1)
        assert found == pytest.approx(tuple(np.quantile(resampled, [0.05, 0.95])), rel=1e-13)
    assert ours.random() == plain.random()
    assert bootstrap_interval([3.0], ours) == (3.0, 3.0)


def test_a_constant_sample_has_no_spread():
    assert bootstrap_interval([2.0] * 7, np.random.default_rng(0)) == (2.0, 2.0)


@pytest.mark.parametrize("sample", [[], [[1.0, 2.0]]])
def test_bootstrap_refuses_what_is_not_a_flat_sample(sample):
    with pytest.raises(BindscopeError, match="flat sample"):
        bootstrap_interval(sample, np.random.default_rng(0))


def test_confidence_outside_the_open_unit_interval_is_refused():
    with pytest.raises(BindscopeError, match="strictly between 0 and 1"):
        wilson_interval(1, 2, confidence=1.0)


@pytest.mark.parametrize(
    ("freedom", "confidence", "quantile"),
    [(1, 0.95, 12.7062), (2, 0.95, 4.30265), (3, 0.95, 3.18245), (10, 0.9, 1.81246), (30, 0.99, 2.74999)],
)
def test_students_quantiles_agree_with_the_printed_table(freedom, confidence, quantile):
    assert student_quantile(freedom, confidence) == pytest.approx(quantile, rel=1e-5)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_students_quantile_with_one_and_two_degrees_of_freedom_is_the_closed_form(confidence):
    """ν = 1: tan(πc/2), Cauchy's; ν = 2: c√(2/(1 − c²))."""
    assert student_quantile(1, confidence) == pytest.approx(np.tan(np.pi * confidence / 2), rel=1e-12)
    assert student_quantile(2, confidence) == pytest.approx(confidence * np.sqrt(2 / (1 - confidence**2)), rel=1e-12)


def test_students_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    intervals = [student_interval(rng.normal(2, 1, 3)) for _ in range(2000)]
    assert np.mean([low <= 2 <= high for low, high in intervals]) == pytest.approx(0.95, abs=0.015)
    with pytest.raises(BindscopeError, match="at least two"):
        student_interval([1.0])
