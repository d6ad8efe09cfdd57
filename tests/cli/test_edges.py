"""The edges command: edges with their error, circuits beside random ones, a diagram, and what cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.answers import answer, refusal
from studies.made_runs import make_run

FEW = ("--n", "8", "--points", "2", "--checked", "4", "--random", "1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "made").path


def test_the_whole_model_is_faithful_and_errors_are_those_of_the_edges_shown(made: Path, capsys) -> None:
    found = json.loads(answer(capsys, "edges", str(made), *FEW, "--json"))
    circuits = found["circuits"]
    assert circuits["faithfulness"][-1] == pytest.approx([1.0, 1.0], abs=1e-4)
    assert circuits["size"][-1] == len(found["edges"])
    errors = [abs(a - b) for a, b in zip(found["checked"]["attributed"], found["checked"]["exact"])]
    assert found["largest_error"] == pytest.approx(max(errors))
    assert found["n_tried"] == 4


def test_tables_and_diagram(made: Path, tmp_path: Path, capsys) -> None:
    said = answer(capsys, "edges", str(made), *FEW, "--out", str(tmp_path / "a.svg"))
    assert "Attribution against 4 edges patched exactly" in said
    assert "random circuits" in said
    assert (tmp_path / "a.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--n", "2"], "--n: must be at least 4"),
        (["--depth", "9"], "such pairs have depths 1 to 2"),
        (["--out", "a.txt"], "unknown ending"),
        (["--method", "magic"], "--method"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(made: Path, words: list[str], sentence: str, capsys) -> None:
    assert sentence in refusal(capsys, "edges", str(made), *words)
