"""Over widths, a coefficient that is flat is told from one that grows with the parameters."""

import numpy as np
import pytest
import xarray as xr

from bindscope.studies.assign_add.experiments.width import (
    PULLS,
    SAMPLING,
    USUAL_PARAMETERS,
    conclude_widths,
    draw_widths,
    find_power,
    sampling_of,
)

N_PARAMETERS = np.array([2e4, 7e4, 27e4])


def made(exponents: tuple[float, float], noise: float = 0.05, left: int = 0) -> xr.Dataset:
    """Three widths, three seeds: a coefficient of these exponents for the two pulls, ``left`` runs with chains that left."""
    rng = np.random.default_rng(0)
    values = np.stack([10 * (N_PARAMETERS / 2e4) ** exponent for exponent in exponents], -1)  # [variant, pull]
    values = values[:, None] * np.exp(rng.normal(0, noise, (3, 3, 2)))
    gone = np.zeros((3, 3, 2))
    gone.reshape(-1, 2)[:left] = 1
    each = ("variant", "seed")
    return xr.Dataset(
        {
            "coefficient": ((*each, "pull"), values),
            "left": ((*each, "pull"), gone),
            "n_parameters": (each, np.repeat(N_PARAMETERS[:, None], 3, 1)),
            "last_step": (each, np.full((3, 3), 900.0)),
            "final_loss": (each, np.full((3, 3), 0.25)),
        },
        {"variant": ["width-32", "width-64", "width-128"], "seed": range(3), "pull": list(PULLS)},
    )


def test_the_exponent_is_the_one_it_was_made_with():
    dataset = made((1.0, 0.0))
    for pull, exponent in zip(PULLS, (1.0, 0.0)):
        power, n_left_out = find_power(dataset, pull)
        assert power.low < exponent < power.high
        assert (power.n, n_left_out) == (9, 0)


@pytest.mark.parametrize(
    ("exponents", "told"),
    [
        ((1.0, 0.0), ("proportional to them.", "flat.")),
        ((0.5, 0.5), ("neither flat nor proportional to them.",) * 2),
    ],
)
def test_the_conclusion_says_which(exponents, told):
    first, second = conclude_widths(made(exponents)).split(" With the pull", 1)
    assert first.endswith(told[0])
    assert second.endswith(f"{told[1]} Losses on trained sums end at width-32 0.25, width-64 0.25, width-128 0.25.")


def test_noise_that_hides_the_difference_is_said():
    assert "too few runs to tell flat from proportional" in conclude_widths(made((0.5, 0.5), noise=2.0))


def test_runs_whose_chains_left_are_counted_and_not_fitted():
    power, n_left_out = find_power(made((1.0, 1.0), left=2), PULLS[0])
    assert (power.n, n_left_out) == (7, 2)
    assert "too few runs are left" in conclude_widths(made((1.0, 1.0), left=8))


def test_a_pull_per_model_moves_chains_as_far_at_every_width():
    """Where nothing else draws, |w − w*|² is parameters / γ."""
    far = [n / sampling_of("per model", n).elasticity for n in (20_000, USUAL_PARAMETERS, 300_000)]
    assert far == pytest.approx([far[0]] * 3)
    assert sampling_of("per parameter", 300_000) == SAMPLING == sampling_of("per model", USUAL_PARAMETERS)


def test_the_figure_has_a_chart_for_each_pull():
    assert len(draw_widths(made((1.0, 0.0))).axes) == 2
