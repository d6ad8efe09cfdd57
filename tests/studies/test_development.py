"""Curves of a run side by side: what is saved is gathered, what is not is named, and each says when it turns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.studies.framework.curves import Curve, NotMade, gather_curves, over_steps, plateau_of
from bindscope.studies.framework.development import develop
from bindscope.studies.framework.results import Library, Result, every_step
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset
from bindscope.studies.framework.verify import all_studies, study_or_none
from studies.made_runs import MASTERED, make_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory):
    return make_run(tmp_path_factory.mktemp("runs") / "made")


def library_of(run, *more: Result) -> Library:
    return Library(run, (*study_or_none("binding").results, *more), folder=run.path / "results")


def test_what_the_evaluations_recorded_turns_where_the_simulated_run_learns(run):
    dataset = develop(library_of(run))
    assert {"accuracy", "loss", "follows-chain", "follows-early-lines", "depth-1", "depth-2"} <= set(
        dataset.curve.values
    )
    assert "depth-3" not in dataset.curve.values  # its programs have no such chains
    depth_1, depth_2 = (float(dataset.turned_at.sel(curve=f"depth-{depth}")) for depth in (1, 2))
    assert depth_2 <= depth_1 <= MASTERED
    phases = phases_of(trajectory_dataset(run.metrics, run.manifest.config))
    assert phases[-2].first_step < depth_2 <= phases[-1].first_step
    assert dataset.attrs["phase_names"] == [phase.name for phase in phases]


def test_a_result_that_is_not_measured_is_named_and_nothing_is_measured_for_it(run):
    def refuse(context):
        raise AssertionError("gathering must not measure")

    slow = Result("slow", "something slow", refuse, steps=every_step)
    curve = Curve("slow", "a slow one", "", "slow", lambda dataset: over_steps(dataset.x))
    dataset = gather_curves(library_of(run, slow), (curve,))
    assert dataset.attrs["missing"] == "slow"
    assert dataset.sizes["curve"] == 0


def test_a_measure_of_few_checkpoints_stands_beside_one_of_many_evaluations(run):
    def measure(context):
        return xr.Dataset({"x": ("step", np.arange(3.0))}, {"step": [0, 1000, 2000]})

    few = Result("few", "at few steps", measure)
    curve = Curve("few", "at few steps", "counts", "few", lambda dataset: over_steps(dataset.x), "count")
    study = study_or_none("binding")
    dataset = gather_curves(library_of(run, few), (*study.curves, curve))
    one = dataset.sel(curve="few").value
    assert one.dropna("step").step.values.tolist() == [0, 1000, 2000]
    assert one.dropna("step").values.tolist() == [0, 1, 2]
    assert dataset.sizes["step"] > 3


def test_a_curve_that_a_result_does_not_hold_is_left_out(run):
    def nothing(dataset):
        raise NotMade("no such chains")

    dataset = gather_curves(library_of(run), (Curve("none", "none", "", "trajectory", nothing),))
    assert dataset.sizes["curve"] == 0
    assert dataset.attrs["missing"] == ""


def test_curves_are_over_steps_alone():
    with pytest.raises(ValueError, match="over \\(step\\)"):
        over_steps(xr.DataArray(np.zeros((2, 2)), dims=("step", "layer"), coords={"step": [0, 1]}))


def test_every_curve_names_a_result_of_its_study_and_explains_itself():
    for study in all_studies():
        names = {result.name for result in study.results}
        assert len({curve.id for curve in study.curves}) == len(study.curves)
        for curve in study.curves:
            assert curve.result in names
            assert len(curve.explains) > 30


def test_a_run_of_one_phase_has_no_plateau():
    assert plateau_of([]) is None


def test_the_figure_has_a_strip_for_every_curve(run, tmp_path: Path):
    from bindscope.studies.plots.development import figure_development

    dataset = develop(library_of(run))
    assert len(figure_development(dataset).axes) == dataset.sizes["curve"]
