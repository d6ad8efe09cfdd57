"""The local learning coefficient saved with shipped runs: drawn, read as a curve, and what the documentation says of it."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from bindscope.measures.learning_coefficient.sampling import Sampling
from bindscope.runs.directory import Run
from bindscope.runs.locate import SHIPPED_DIRECTORY
from bindscope.studies.development.coefficient.draw import choose_traces, draw_coefficient, draw_coefficients
from bindscope.studies.development.coefficient.measure import CURVE, chosen_layers, refined_steps
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import find_study
from bindscope.studies.plots.style import figure_to_svg

MEASURED = ("binding-plain", "assign-add")


def results_of(name: str) -> dict[str, xr.Dataset]:
    run = Run.open(SHIPPED_DIRECTORY / name)
    library = Library(run, find_study(run.config.task.family).results, run.path / "results")
    found = {result: library.find(result) for result in ("coefficient", "coefficient_refined", "trajectory")}
    return {result: filled.dataset for result, filled in found.items() if filled and filled.dataset is not None}


@pytest.mark.parametrize("name", MEASURED)
def test_every_checkpoint_has_a_coefficient_or_says_that_its_chains_diverged(name):
    found = results_of(name)["coefficient"]
    assert found.sizes["step"] == len(Run.open(SHIPPED_DIRECTORY / name).steps)
    assert (found.coefficient.isnull() == (found.diverged == 1)).all()
    assert found.attrs["elasticity"] == Sampling().elasticity  # the settings that are documented, for all runs
    known = found.equipartition[found.diverged == 0]
    np.testing.assert_allclose(known, 1, atol=0.02)


@pytest.mark.parametrize("name", MEASURED)
def test_the_figure_has_the_phases_and_the_traces(name):
    svg = figure_to_svg(draw_coefficients(results_of(name)), "c", "coefficient")
    assert "traces" in svg
    assert "the local learning coefficient over training" in svg.lower()


def test_the_coefficient_is_a_curve_of_the_development_page():
    found = results_of("binding-plain")["coefficient"]
    curve = CURVE.read(found)
    assert set(curve.data_vars) == {"value", "low", "high"}
    assert (curve.low <= curve.value).all()


def test_on_binding_plain_it_rises_with_the_answers_and_falls_again():
    """What docs/development.md says: flat on the plateau, three times as large at its end, smallest at the end."""
    found = results_of("binding-plain")["coefficient"].coefficient
    plateau = found.sel(step=[200, 300, 400])
    assert float(found.sel(step=600)) > 2 * float(plateau.max())
    assert float(found.isel(step=-1)) < float(plateau.min())


def test_few_checkpoints_around_the_end_of_the_plateau_are_refined():
    run = Run.open(SHIPPED_DIRECTORY / "binding-plain")
    assert refined_steps(run) == [200, 500, 600, 5300]
    assert chosen_layers(6) == ["L0", "L3", "L5"]
    assert chosen_layers(1) == ["L0"]


def test_one_checkpoint_is_drawn_by_its_traces_alone():
    one = results_of("binding-plain")["coefficient"].isel(step=[3])
    assert len(draw_coefficient(one).axes) == 1
    assert choose_traces(one) == [0]
