"""The exponent of a power law is found, with an interval that holds it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.measures.stats.powers import fit_power


@given(st.floats(-3, 3), st.floats(0.01, 100))
def test_an_exact_power_law_is_found(exponent: float, factor: float) -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    power = fit_power(x, factor * x**exponent)
    assert power.value == pytest.approx(exponent, abs=1e-9)
    np.testing.assert_allclose(power.at(x), factor * x**exponent, rtol=1e-6)


def test_about_one_interval_in_twenty_misses_the_exponent() -> None:
    rng, x = np.random.default_rng(0), np.repeat([1.0, 3.0, 9.0], 4)
    powers = [fit_power(x, x**0.7 * np.exp(rng.normal(0, 0.2, len(x)))) for _ in range(600)]
    missed = np.mean([not power.low <= 0.7 <= power.high for power in powers])
    assert 0.02 < missed < 0.09


def test_too_few_points_have_no_exponent() -> None:
    assert np.isnan(fit_power(np.array([1.0, 2.0]), np.array([1.0, 2.0])).value)
    assert np.isnan(fit_power(np.array([2.0, 2.0, 2.0]), np.array([1.0, 2.0, 3.0])).value)
