"""The mixture command gives a constructed run its own account, draws it, and refuses what cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.answers import answer, refusal
from studies.made_runs import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "made").path


def test_the_constructed_run_looks_names_up(made: Path, capsys) -> None:
    found = json.loads(answer(capsys, "mixture", str(made), "--n", "40", "--layer", "1", "--json"))
    assert found["accuracy"] == 1
    ends = [row for row in found["rows"] if row["position"] == "end"]
    assert [row["layer"] for row in ends] == [1]
    weight, low, high = ends[0]["weights"]["lexical"]
    assert weight == pytest.approx(1)
    assert 0.85 < low < high == 1


def test_table_and_figure(made: Path, tmp_path: Path, capsys) -> None:
    said = answer(capsys, "mixture", str(made), "--n", "40", "--out", str(tmp_path / "a.svg"))
    assert "100% are answered correctly" in said
    assert "patched" in said and "lexical" in said  # noqa: PT018
    assert "looked up by" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--n", "4"], "--n: must be at least 40"),
        (["--layer", "9"], "layer 9: the model has layers 0 to 3, and 4 is its end"),
        (["--depth", "3"], "depth must lie between 1 and 2"),
        (["--out", "a.txt"], "unknown ending"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(made: Path, words: list[str], sentence: str, capsys) -> None:
    assert sentence in refusal(capsys, "mixture", str(made), *words)
