"""``bindscope attention`` as a person uses it, on a run whose weights are written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import xarray as xr

from cli.answers import answer, refusal
from studies.made_sums import make_sums


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_sums(tmp_path_factory.mktemp("runs") / "made").path)


def test_a_sum_is_answered_with_its_looks(sums: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, "attention", sums, "c=1 _ b=7 | b+9")
    assert "true answer: 3; its operands are 7 in column 4 and 9 in column 14" in text
    row = text.splitlines()[-1].split()
    assert row[:3] == ["200", "3", "right"]
    assert row[-4:] == ["0.500"] * 4


def test_every_checkpoint_is_shown_and_written(sums: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, "attention", sums, "c=1 b=7 | b+c", "--step", "all", "--out", str(tmp_path / "sum.nc"))
    assert [line.split()[0] for line in text.splitlines()[5:8]] == ["0", "100", "200"]
    saved = xr.load_dataset(tmp_path / "sum.nc")
    assert dict(saved.pattern.sizes) == {"step": 3, "layer": 2, "query": 16, "key": 16}
    assert "numbers" in text.splitlines()[-1]


def test_a_figure_and_json(sums: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["attention", sums, "c=1 b=7 | b+c", "--json", "--out", str(tmp_path / "sum.svg")]
    found = json.loads(answer(capsys, *arguments))
    assert found["attributes"]["answer"] == "8"
    assert found["variables"]["pattern"]["dims"] == ["step", "layer", "query", "key"]
    assert (tmp_path / "sum.svg").read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["c=1 b=7"], "no '|' before the sum"),
        (["c=1 | b+9"], "'b' is used but never assigned"),
        (["c=1 | c+99"], "'99' is not a number from 0 to 12"),
        (["c=1 | c+9", "--step", "150"], "step 150 was not saved"),
        (["c=1 | c+9", "--out", "sum.txt"], "unknown ending 'txt'"),
    ],
)
def test_what_cannot_be_read_is_refused(
    arguments: list[str], sentence: str, sums: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refusal(capsys, "attention", sums, *arguments)


def test_a_run_of_another_family_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = refusal(capsys, "identifiers", "assign-add")
    assert sentence == "assign-add: its task is assign_add; programs are for runs on binding or code."


def test_a_program_is_answered_with_what_heads_attend_to(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    program, out = "a=5;b=a;c=3;#b:", str(tmp_path / "heads.svg")
    text = answer(capsys, "attention", "binding-laptop", program, "--step", "0", "--ablate", "L1.H2", "--out", out)
    assert "binding-laptop at step 0: a=5;b=a;c=3;#b:" in text
    assert sum(line.startswith("L") for line in text.splitlines()) == 5 * 4
    assert (tmp_path / "heads.svg").read_text().count("<svg") == 1
    found = json.loads(answer(capsys, "attention", "binding-laptop", program, "--json"))
    assert found["variables"]["pattern"]["dims"] == ["layer", "head", "query", "key"]
    assert "sites are ablated in programs" in refusal(
        capsys, "attention", "assign-add", "c=1 | c+9", "--ablate", "L0.H0"
    )


def test_run_takes_a_sum_too(sums: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, "predict", sums, "c=1 b=7 | b+c")
    assert "true answer: 8" in text
    assert "right" in text.splitlines()[-1]
