"""The experiment on the plateau: slopes are those the data were made with, and runs that were cut off are left out."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from bindscope.studies.binding.experiments.define_plateau import BASE, EXPERIMENT
from bindscope.studies.binding.experiments.plateau import EXPONENTS, conclude_plateau, draw_plateau, find_slope
from bindscope.studies.framework.experiments import plan_cells

WIDTHS = {cell.variant: cell.config.model for cell in plan_cells(EXPERIMENT, range(1))}


def made(exponents: dict[str, float], noise: float = 0.0, n_seeds: int = 3) -> xr.Dataset:
    """Plateaus that last 500 steps at the base and go as the given powers elsewhere."""
    labels = {name: [variant.labels[name] for variant in EXPERIMENT.variants] for name in (*BASE, "tokens")}
    at = {name: np.array(values, float) for name, values in labels.items()}
    lengths = 500 * np.prod([(at[name] / at[name][0]) ** power for name, power in exponents.items()], axis=0)
    rng = np.random.default_rng(0)
    learned = lengths[:, None] * np.exp(noise * rng.standard_normal((len(lengths), n_seeds)))
    names = [variant.name for variant in EXPERIMENT.variants]
    return xr.Dataset(
        {
            "learned": (("variant", "seed"), learned),
            "last_step": (("variant", "seed"), np.full(learned.shape, 3_000.0)),
        },
        {"variant": names, "seed": range(n_seeds), **{name: ("variant", values) for name, values in labels.items()}},
    )


@pytest.mark.parametrize("factor", EXPONENTS)
def test_the_slope_of_a_factor_is_the_power_it_was_made_with(factor):
    powers = {"letters": 0.5, "tokens": 1.5, "batch": -0.25, "rate": -2.0, "width": 0.75}
    slope = find_slope(made(powers), factor).power
    assert slope.value == pytest.approx(powers[factor])
    noisy = find_slope(made(powers, noise=0.1), factor).power
    assert noisy.low < powers[factor] < noisy.high
    assert noisy.low < noisy.value < noisy.high


def test_runs_that_were_cut_off_are_left_out_and_counted():
    dataset = made(EXPONENTS)
    dataset.learned.loc[{"variant": "letters-12"}] = np.nan
    slope = find_slope(dataset, "letters")
    assert slope.n_cut_off == 3
    assert slope.power.value == pytest.approx(1)
    dataset.last_step.loc[{"variant": "letters-12"}] = np.nan  # never trained at all
    assert find_slope(dataset, "letters").n_cut_off == 0


def test_the_conclusion_tells_what_is_as_predicted_and_what_is_not():
    told = conclude_plateau(made({**EXPONENTS, "width": 0.0}, noise=0.05))
    assert told.count("not as predicted") == 1
    assert "width: exponent" in told.split("not as predicted")[0].rsplit(";", 1)[-1]
    few = conclude_plateau(made(EXPONENTS, noise=1.5, n_seeds=1))
    assert "too few runs to tell" in few
    assert "500" in conclude_plateau(made(EXPONENTS))


def test_one_factor_differs_from_the_base_in_every_other_variant():
    for variant in EXPERIMENT.variants[1:]:
        factor = variant.name.split("-")[0]
        assert {name for name in BASE if variant.labels[name] != BASE[name]} == {factor}
    assert WIDTHS["width-128"].d_model == 128
    assert len({model.n_layers for model in WIDTHS.values()}) == 1


def test_the_figure_has_a_panel_for_each_factor():
    assert len(draw_plateau(made(EXPONENTS, noise=0.1)).axes) == len(EXPONENTS)
