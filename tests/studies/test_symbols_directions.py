"""Early updates of small models that copy are measured, told in a table and refused where sizes make no sense."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from bindscope.cli.copying import format_copying
from bindscope.errors import BindscopeError
from bindscope.intervals import student_interval
from bindscope.studies.symbols.width.measure import cell_of, measure_directions
from bindscope.studies.symbols.width.widths import mean_over_seeds


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    return measure_directions((8, 32), 16, (0, 1), (1, 2))


def test_unseen_symbols_get_less_the_wider_the_model_as_predicted(dataset: xr.Dataset) -> None:
    ratio = dataset.ratio.sel(model="plain", step=0).mean(["seed", "layer"])
    assert float(ratio.sel(width=32)) < float(ratio.sel(width=8))
    predicted = dataset.predicted_ratio.sel(model="plain").mean("seed")
    assert ratio.values == pytest.approx(predicted.values, abs=0.12)
    assert dataset.simple_ratio.sel(model="plain").mean("seed").values == pytest.approx(predicted.values, abs=0.12)


def test_with_identity_scaling_all_symbols_get_the_same(dataset: xr.Dataset) -> None:
    assert dataset.ratio.sel(model="both").mean(["seed", "layer"]).values == pytest.approx(1, abs=0.1)
    assert dataset.identity_fraction.sel(model="both", step=1).values == pytest.approx(1, abs=0.05)


def test_predictions_count_different_symbols_only(dataset: xr.Dataset) -> None:
    config = cell_of("plain", 8, 16, 1)
    different = len(np.unique(config.task.training_set().tokens[:, 0]))  # type: ignore[union-attr]
    there = dataset.sel(model="plain", width=8, seed=1)
    assert int(there.n_symbols) == different < 16
    assert float(there.predicted_ratio) == pytest.approx(different / (different + 7))


def test_the_table_has_means_with_intervals_over_seeds(dataset: xr.Dataset) -> None:
    found = mean_over_seeds(dataset, "ratio", "plain", 32, 2)
    seeds = dataset.ratio.sel(model="plain", width=32, step=2).mean("layer").values
    assert (found.low, found.high) == pytest.approx(student_interval(seeds))
    table = format_copying(dataset)
    assert found.number in table
    assert sum(line.split()[:1] == ["32"] for line in table.splitlines()) == 3
    assert mean_over_seeds(dataset.isel(seed=[0]), "ratio", "plain", 32, 2).low is None


@pytest.mark.parametrize(
    ("widths", "n", "steps", "word"),
    [((1,), 16, (1,), "widths"), ((), 16, (1,), "widths"), ((8,), 1, (1,), "n:"), ((8,), 16, (0,), "steps")],
)
def test_sizes_without_sense_are_refused(widths: tuple[int, ...], n: int, steps: tuple[int, ...], word: str) -> None:
    with pytest.raises(BindscopeError, match=word):
        measure_directions(widths, n, (0,), steps)
