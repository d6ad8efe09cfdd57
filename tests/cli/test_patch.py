from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from bindscope.cli.outcome import binding_task
from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.patching import patch_sites
from bindscope.runs.directory import Run
from bindscope.runs.locate import SHIPPED_DIRECTORY
from bindscope.tasks.binding import named_positions, sample_root_pairs
from cli.answers import answer, refusal

PAIR = ("a=5;b=a;#b:", "a=8;b=a;#b:")
SMALL = ("--n", "12", "--first-root-line", "1")


def cells(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict]:
    return json.loads(answer(capsys, "patch", "small", *arguments, "--json"))["cells"]


def test_a_typed_pair_shows_where_its_value_stands(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {(c["layer"], c["position"]): c["mean"] for c in cells(capsys, *PAIR, "--metric", "logit_difference")}
    assert found[0, "rhs 1"] == pytest.approx(1, abs=1e-3)  # all that differs is put in: the counterfactual's answer
    assert found[0, "rhs 2"] == found[0, "query"] == 0
    table = answer(capsys, "patch", "small", *PAIR)
    assert "5 → 8" in table
    assert "rhs 2" in table


def test_drawn_pairs_are_those_of_the_seed_and_the_numbers_those_of_the_library(
    workplace: Path, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = Run.open(trained)
    task, model = opened.config.task, opened.checkpoint("last")
    pairs = sample_root_pairs(task, np.random.default_rng(7), 12, range(1, task.max_depth + 1))  # type: ignore[arg-type]
    positions, contrast = named_positions(pairs), contrast_pairs(pairs, "denoising")
    expected = patch_sites(model, contrast, ["L0.H1"], positions=positions["rhs 1"]).kl.mean()
    arguments = ("--site", "L0.H1@rhs 1", "--direction", "denoising", "--metric", "kl", "--seed", "7")
    (cell,) = cells(capsys, *SMALL, *arguments)
    assert cell["mean"] == pytest.approx(float(expected), rel=1e-5)
    assert cell["low"] <= cell["mean"] <= cell["high"]
    assert cell["n"] == 12


def test_what_is_left_out_is_said(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "left out" in answer(capsys, "patch", "small", "--n", "6")
    assert "left out" not in answer(capsys, "patch", "small", *SMALL)


@pytest.mark.parametrize(("grid", "dims"), [("residual", "position"), ("heads", "head"), ("chain", "position")])
def test_every_grid_is_printed_drawn_and_kept(
    grid: str, dims: str, workplace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "strongest cells" in answer(
        capsys, "patch", "small", *SMALL, "--grid", grid, "--out", str(tmp_path / "g.svg")
    )
    assert (tmp_path / "g.svg").read_text().count("<svg") == 1
    answer(capsys, "patch", "small", *SMALL, "--grid", grid, "--out", str(tmp_path / "g.nc"), "--json")
    kept = xr.load_dataset(tmp_path / "g.nc", engine="h5netcdf")
    assert kept.success.dims == ("step", "layer", dims, "pair")
    assert kept.attrs["pairs"].startswith("12 pairs")
    for cell in cells(capsys, *SMALL, "--grid", grid):
        values = kept.success.isel(step=0).sel({"layer": cell["layer"], dims: cell[dims]})
        assert cell["n"] == int(values.notnull().sum())
        assert cell["mean"] is None or cell["mean"] == pytest.approx(float(values.mean()), abs=1e-6)


def test_cells_are_followed_over_all_checkpoints(
    workplace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    over_steps = cells(capsys, *SMALL, "--site", "L1.resid_pre", "--steps", "all")
    assert [cell["step"] for cell in over_steps] == [0, 4, 8, 12]
    (alone,) = cells(capsys, *SMALL, "--site", "L1.resid_pre", "--step", "8")
    assert alone["mean"] == over_steps[2]["mean"]
    text = answer(capsys, "patch", "small", *SMALL, "--steps", "0,last", "--out", str(tmp_path / "steps.png"))
    assert "the best layer of each" in text
    assert text.count("\n   0  ") + text.count("\n  12  ") == 2
    assert (tmp_path / "steps.png").read_bytes().startswith(b"\x89PNG")


def test_activations_may_come_from_another_checkpoint(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = ("--site", "L1.resid_post", "--metric", "logit_difference", *SMALL)
    (same,) = cells(capsys, *whole, "--from-step", "12")
    (earlier,) = cells(capsys, *whole, "--from-step", "0")
    assert same["mean"] == pytest.approx(1, abs=1e-3)
    assert earlier["mean"] != same["mean"]
    assert "taken from step 0" in answer(capsys, "patch", "small", *whole, "--from-step", "0")


def test_an_estimate_says_how_far_it_is_from_the_exact_grid(
    workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = answer(capsys, "patch", "small", *SMALL, "--grid", "heads", "--approximate")
    assert "against the exact grid" in text
    assert "correlation" in text


def test_a_grid_with_a_tolerance_says_how_far_it_is_off(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("patch", "small", *SMALL, "--grid", "residual", "--tolerance", "0.001")
    assert "tolerance 0.001 logits; largest error over" in answer(capsys, *asked)
    both = answer(capsys, *asked, "--steps", "0,last")
    assert "logits " in both.split("largest error over")[1].splitlines()[0]
    assert "tolerance" not in answer(capsys, "patch", "small", *SMALL, "--grid", "residual")


def test_a_single_neuron_does_less_than_its_layer(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layer = ("--site", "L0.post", "--metric", "kl", *SMALL)
    (neuron,), (every,) = cells(capsys, *layer, "--neuron", "3"), cells(capsys, *layer)
    assert 0 < neuron["mean"] < every["mean"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--site", "L9.resid_pre"], "this model has embed, final and, in layers L0 to L1 with heads"),
        (["--site", "L0.H9"], "with heads H0 to"),
        (["--site", "L0.residual"], "resid_pre, q, k, v"),
        (["--site", "L0.H1@rhs 9"], "no position 'rhs 9'"),
        (["--site", "L0.resid_pre@999"], "positions 0 to"),
        ([PAIR[0], PAIR[0]], "the same program as the base"),
        ([PAIR[0], "a=8;b=a;c=1;#b:"], "2 and 3 lines"),
        ([PAIR[0], "a=5;c=a;#c:"], "both programs have the answer 5"),
        ([PAIR[0]], "give a second one"),
        ([*PAIR, "--depth", "2"], "leave it out when you type"),
        ([PAIR[0], "a=8;b=z;#b:"], "line 2: 'z' is used before it is assigned"),
        (["--step", "7"], "the nearest is 8"),
        (["--steps", "0,7"], "the nearest is 8"),
        (["--from-step", "7"], "the nearest is 8"),
        (["--depth", "9"], "--depth: such pairs have depths 1 to"),
        (["--n", "0"], "at least 1"),
        (["--first-root-line", "99"], "--first-root-line"),
        (["--neuron", "3"], "name the sites"),
        (["--site", "L0.post", "--neuron", "99999"], "dimensions 0 to"),
        (["--approximate", "--metric", "success"], "not success"),
        (["--approximate", "--steps", "all"], "one checkpoint"),
        (["--grid", "heads", "--tolerance", "0.01"], "grids of the residual stream"),
        (["--site", "L0.H1", "--tolerance", "0.01"], "grids of the residual stream"),
        (["--tolerance", "-1"], "--tolerance"),
        (["--out", "grid.jpg"], "svg, pdf, png, nc"),
    ],
)
def test_what_cannot_be_patched_is_refused_and_nothing_is_written(
    arguments: list[str], sentence: str, workplace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(workplace.rglob("*"))
    out = [] if "--out" in arguments else ["--out", str(tmp_path / "never.svg")]
    assert sentence in refusal(capsys, "patch", "small", *arguments, *out)
    assert sorted(workplace.rglob("*")) == before
    assert list(tmp_path.iterdir()) == []


def test_a_run_of_another_family_is_refused() -> None:
    run = SimpleNamespace(name="sums", config=SimpleNamespace(task=SimpleNamespace(family="assign_add")))
    with pytest.raises(BindscopeError, match="its task is assign_add"):
        binding_task(run)  # type: ignore[arg-type]


def test_a_shipped_run_is_never_written_into(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = SHIPPED_DIRECTORY / "binding-laptop" / "results" / "grid.svg"
    assert "not written into" in refusal(capsys, "patch", "binding-laptop", "--out", str(out))
    assert not out.exists()
