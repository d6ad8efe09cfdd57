"""The same seed on the same machine makes the same bytes; only clocks differ, and they stand apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import xarray as xr

from bindscope.runs.config import RunConfig
from bindscope.runs.data import prepare_data
from bindscope.runs.directory import Run
from bindscope.runs.execute import train_run
from bindscope.runs.results import write_dataset
from bindscope.runs.series import Series


def test_the_same_seed_trains_the_same_bytes(config: RunConfig, trained: Path, tmp_path: Path) -> None:
    one, other = Run.open(trained), train_run(config, tmp_path / "again", device="cpu", threads=1)
    assert one.steps == other.steps
    for step in one.steps:
        assert one.weights_file(step) == other.weights_file(step)
    without_clock = [[{**record, "elapsed": 0} for record in run.metrics] for run in (one, other)]
    assert without_clock[0] == without_clock[1]
    states = [run.load_state() for run in (one, other)]
    assert all(torch.equal(states[0].optimizer[name], value) for name, value in states[1].optimizer.items())
    assert list(one.weights("last")) == list(other.weights("last")) == sorted(one.weights("last"))
    assert one.manifest.data == other.manifest.data


def test_the_same_seed_draws_the_same_data(config: RunConfig) -> None:
    assert prepare_data(config).fingerprint == prepare_data(config).fingerprint


def test_the_same_numbers_make_the_same_file(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((50, 4))
    numbers = xr.Dataset({"success": (("pair", "layer"), values)}, {"layer": list("abcd")}, {"n": 64, "run": "tiny"})
    paths = [write_dataset(tmp_path / name, numbers) for name in ("one.nc", "other.nc")]
    paths += [Series(tmp_path / name).write(4, "key", numbers, "pair") for name in ("a", "b")]
    contents = [path.read_bytes() for path in paths]
    assert contents[0] == contents[1]
    assert contents[2] == contents[3]
