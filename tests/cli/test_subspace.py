"""``bindscope subspace`` and ``bindscope probe`` as a person uses them, on a very small run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bindscope
from bindscope.runs.config import config_to_mapping
from bindscope.runs.directory import Run
from bindscope.runs.locate import SHIPPED_DIRECTORY
from bindscope.runs.manifest import Manifest
from bindscope.studies.framework.presets import find_preset
from cli.test_commands import answer, refusal

Captured = pytest.CaptureFixture[str]


def test_a_subspace_is_shown_beside_its_controls_and_kept(workplace: Path, tmp_path: Path, capsys: Captured) -> None:
    numbers = tmp_path / "values.nc"
    text = answer(capsys, "subspace", "small", "--rank", "4", "--n", "20", "--out", str(numbers))
    for word in ("found", "random", "shuffled labels", "untrained model", "4 dimensions for values by pca", "left out"):
        assert word in text
    dataset = xr.load_dataset(numbers)
    assert dataset.sizes["component"] == 4
    assert dataset.attrs["n_test_pairs"] == 20
    shown = f"{dataset.success_fraction.sel(condition='found').item():.3f}"
    assert shown in next(line for line in text.splitlines() if line.startswith("found"))


def test_a_rotation_of_names_and_a_figure(workplace: Path, tmp_path: Path, capsys: Captured) -> None:
    figure = tmp_path / "names.svg"
    options = [
        "--of",
        "names",
        "--method",
        "rotation",
        "--rank",
        "3",
        "--n",
        "8",
        "--position",
        "query",
        "--layer",
        "0",
    ]
    text = answer(capsys, "subspace", "small", *options, "--out", str(figure))
    assert "3 dimensions for names by rotation in layer 0 at query" in text
    assert "<svg" in figure.read_text()


def test_every_layer_and_position(workplace: Path, tmp_path: Path, capsys: Captured) -> None:
    figure = tmp_path / "sweep.svg"
    text = answer(capsys, "subspace", "small", "--everywhere", "--rank", "2", "--n", "8", "--out", str(figure))
    assert "layer 1" in text
    assert any(line.startswith("chain") for line in text.splitlines())
    assert figure.exists()


@pytest.mark.parametrize(("more", "axes"), [([], "frozen to step 12"), (["--refit"], "refitted at each step")])
def test_the_figure_over_training_says_where_its_axes_are_from(
    more: list[str], axes: str, workplace: Path, tmp_path: Path, capsys: Captured
) -> None:
    figure = tmp_path / "path.svg"
    assert axes in answer(capsys, "subspace", "small", "--over-training", "--n", "8", *more, "--out", str(figure))
    assert f"Axes {axes}" in figure.read_text()


def test_probes_are_shown_beside_what_line_1_gives(workplace: Path, tmp_path: Path, capsys: Captured) -> None:
    numbers, figure = tmp_path / "probes.nc", tmp_path / "probes.svg"
    text = answer(capsys, "probe", "small", "--n", "40", "--layers", "0", "--layers", "2", "--out", str(numbers))
    assert "line 1's constant for all" in text
    assert list(xr.load_dataset(numbers).layer.values) == [0, 2]
    slow = ["--probes", "linear", "--probes", "mlp", "--n", "30"]
    assert "trained, mlp" in answer(capsys, "probe", "small", *slow, "--out", str(figure))
    assert figure.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["subspace", "small", "--rank", "17"],
            "rank 17: the residual stream is 16 wide, so give a rank between 1 and 16.",
        ),
        (["subspace", "small", "--layer", "7"], "layer 7: the model has layers 0 to 1"),
        (["subspace", "small", "--position", "collon"], "Did you mean 'colon'?"),
        (["subspace", "small", "--position", "somewhere"], "Known: chain, changed, colon"),
        (["subspace", "small", "--step", "5"], "step 5 was not saved"),
        (["subspace", "small", "--n", "0"], "--n. Must be >= 1"),
        (["subspace", "small", "--refit"], "--over-training"),
        (["subspace", "smal"], "Did you mean 'small'?"),
        (["probe", "small", "--layers", "7"], "layer 7: the model has layers 0 to 1"),
        (["probe", "small", "--step", "5"], "step 5 was not saved"),
        (["probe", "small", "--n", "0"], "--n. Must be >= 1"),
    ],
)
def test_what_cannot_be_asked_is_refused_and_nothing_is_written(
    arguments: list[str], sentence: str, workplace: Path, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "kept.nc"
    assert sentence in refusal(capsys, *arguments, "--out", str(out))
    assert not out.exists()


def test_files_of_unknown_kind_and_inside_shipped_runs_are_refused(workplace: Path, capsys: Captured) -> None:
    assert "svg, pdf, png, nc" in refusal(capsys, "subspace", "small", "--out", "kept.csv")
    inside = SHIPPED_DIRECTORY / "binding-laptop" / "results" / "x.nc"
    assert "shipped runs are not written into" in refusal(capsys, "probe", "small", "--out", str(inside))


def test_runs_on_other_tasks_are_refused(tmp_path: Path, capsys: Captured) -> None:
    config = find_preset("assign-add").config
    Run.create(tmp_path / "sums", Manifest("sums", config_to_mapping(config), config.seeds, total_steps=1))
    for command in ("subspace", "probe"):
        assert "programs are for runs on binding" in refusal(capsys, command, str(tmp_path / "sums"))


def test_a_typed_pair_is_swapped_and_a_typed_program_projected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    pair = ("c=1;d=2;a=5;b=a;#b:", "c=1;d=2;a=8;b=a;#b:")
    text = answer(capsys, "subspace", "binding-laptop", *pair, "--control", "random", "--seed", "3", "--out", "swap.nc")
    assert "10 dimensions for values, random" in text
    expected = bindscope.open_run("binding-laptop").swap(*pair, control="random", seed=3)
    np.testing.assert_allclose(xr.load_dataset("swap.nc", engine="h5netcdf").probability, expected.probability)
    text = answer(capsys, "subspace", "binding-laptop", pair[0], "--axes", "random", "--out", "points.svg")
    points = bindscope.open_run("binding-laptop").project(pair[0], axes="random")
    for token, position, (first, *_) in zip(points.token.values, points.position.values, points.coordinate.values):
        assert f"{token} @{position}" in text
        assert f"{first:+.3f}" in text
    assert "both programs have the answer 5" in refusal(
        capsys, "subspace", "binding-laptop", pair[0], "c=1;d=2;a=5;e=a;#e:"
    )
