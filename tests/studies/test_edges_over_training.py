"""Circuits of edges through training: on a run whose last weights are written, and on what is shipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.runs.directory import Run
from bindscope.runs.locate import SHIPPED_DIRECTORY
from bindscope.studies.binding.edges.measure import CURVES, STRONGEST, chosen_steps, count_needed, follow_edges
from bindscope.studies.framework.measuring import steps_around_plateau
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import study_or_none
from studies.made_runs import MASTERED, make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("made")
    return Library(make_run(folder / "made"), study_or_none("binding").results, folder / "results", n=8)


def test_the_number_of_edges_needed_lies_between_the_sizes_around_it() -> None:
    sizes = np.array([10, 20, 40])
    assert count_needed(sizes, np.array([0.0, 0.6, 1.0])) == pytest.approx(20 * 2**0.5)
    assert count_needed(sizes, np.array([0.9, 0.7, 1.0]), least=0.8) > 20  # it has to stay faithful
    assert count_needed(sizes, np.array([0.8, 0.9, 1.0])) == 10
    assert np.isnan(count_needed(sizes, np.array([0.0, 0.1, 0.2])))
    assert np.isnan(count_needed(sizes, np.array([0.0, np.nan, 1.0])))


def test_what_the_last_circuit_carries_is_its_fraction_of_all_attribution() -> None:
    means = np.zeros((2, 2, 5))
    means[1, 0] = [-5, 4, 0, 0, 0]
    means[0] = 1.0
    dataset = xr.Dataset(
        {"means": (("step", "sender", "receiver"), means)},
        {"step": [0, 1], "sender": list("ab"), "receiver": list("vwxyz")},
    )
    found = follow_edges(dataset)
    assert found.carried.values.tolist() == [STRONGEST, 1.0]  # two of ten edges: by chance as many, at the end all
    assert list(found.edge.values[:2]) == ["a > v", "a > w"]
    assert found.effect.sel(step=1).values[:2].tolist() == [-5, 4]


def test_the_result_grows_a_circuit_where_the_weights_were_written(made: Library) -> None:
    filled = made.fill("edges")
    found = filled.dataset
    assert found is not None, filled.reason
    assert found.step.values.tolist() == list(chosen_steps(made.run))
    solved = found.sel(step=[step for step in found.step.values if step >= MASTERED])
    np.testing.assert_allclose(solved.faithfulness.isel(size=-1), 1, atol=0.01)  # all edges are the base run
    assert float(solved.kept.isel(size=-1).min()) == 1
    untrained = found.sel(step=[step for step in found.step.values if step < MASTERED])
    assert bool(untrained.needed.isnull().all())  # base and source are answered alike: nothing to be faithful to
    assert float(solved.carried.min()) > STRONGEST
    for curve in CURVES:
        assert curve.read(found).value.dims == ("step",)
    drawing = study_or_none("binding").find_figure("edges")
    assert drawing.draw({"edges": found}).axes


def test_steps_are_chosen_around_the_end_of_the_plateau() -> None:
    run = Run.open(SHIPPED_DIRECTORY / "binding-plain")
    assert chosen_steps(run) == [100, 200, 400, 500, 600, 700, 800, 5300]
    assert steps_around_plateau(run, [], 0) == [5300]


@pytest.mark.parametrize("name", ["binding-plain", "binding-neutral"])
def test_shipped_circuits_are_current_small_and_better_than_random_ones(name: str, tmp_path: Path) -> None:
    path = SHIPPED_DIRECTORY / name
    filled = Library(Run.open(path), study_or_none("binding").results, tmp_path, [path / "results"]).find("edges")
    assert filled is not None
    assert filled.dataset is not None
    assert (path / "results" / "edges.nc").stat().st_size < 150_000
    last = filled.dataset.isel(step=-1)
    size = int(last["size"].values[np.searchsorted(last["size"].values, float(last.needed))])
    one = last.sel(size=size)
    assert float(one.faithfulness_low) > float(one.random_most)
    assert float(filled.dataset.carried[-1]) > float(filled.dataset.carried[0])
