"""``bindscope grids``: a series of files, named, resumed and told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bindscope.cli.main import run
from bindscope.runs.results import read_result
from studies.made_runs import make_run


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make_run(tmp_path / "made", steps=(0, 2000)).path


def test_a_series_is_measured_once_and_says_where_it_is(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["grids", str(made), "--n", "6", "--jobs", "1"]
    assert run(words) == 0
    told = capsys.readouterr().out
    folder = made / "results" / "grid-series" / "residual-n6-seed0"
    assert f"saved    {folder}: 2 checkpoints" in told
    assert "measured 2 now" in told
    damaged = folder / "step_00000000.nc"
    damaged.write_bytes(damaged.read_bytes()[:1000])
    assert run([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["steps"] == [0, 2000]
    assert found["measured"] == [0]
    assert str(damaged) in found["notes"][0]
    assert len(found["cells"]) == 2 * len({(cell["layer"], cell["position"]) for cell in found["cells"]})


def test_the_means_are_written_to_a_file(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "means.nc"
    assert (
        run(["grids", str(made), "--grid", "heads", "--n", "6", "--steps", "last", "--jobs", "1", "--out", str(out)])
        == 0
    )
    means = read_result(out)
    assert means.success.dims == ("step", "layer", "head")
    assert means.step.values.tolist() == [2000]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--n", "0"], "--n: must be at least 1"),
        (["--depth", "9"], "such pairs have depths 1 to 2"),
        (["--metric", "success"], "--metric"),
        (["--steps", "7"], "step 7 was not saved"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(
    made: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert run(["grids", str(made), *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not list((made / "results").rglob("*.nc"))
