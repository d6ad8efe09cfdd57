"""The algorithm command names what a constructed run is known to do, draws it, and refuses what cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bindscope.theory.constructed import constructed_circuit
from cli.answers import answer, refusal
from studies.made_runs import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "made").path


def test_the_constructed_run_moves_values_forward_hop_by_hop(made: Path, capsys) -> None:
    found = json.loads(answer(capsys, "algorithm", str(made), "--n", "8", "--json"))
    deepest = json.loads((made / "manifest.json").read_text())["config"]["task"]["max_depth"]
    assert found["summary"].startswith("value-forward at depth")
    for reading in found["depths"]:
        arrows = [(a["what"], a["source"], *a["targets"], a["last_layer"]) for a in reading["arrows"]]
        steps = constructed_circuit(reading["depth"], deepest)
        assert arrows == [("value", s.source, s.target, s.layer) for s in steps if not s.source.startswith("lhs")]


def test_table_sentence_and_diagram(made: Path, tmp_path: Path, capsys) -> None:
    said = answer(capsys, "algorithm", str(made), "--n", "8", "--out", str(tmp_path / "a.svg"))
    assert "depth 1: value-forward: rhs 1 → query (value, L1)" in said
    assert "How a chain is followed" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--n", "4"], "--n: must be at least 8"),
        (["--step", "7"], "step 7 was not saved"),
        (["--out", "a.txt"], "unknown ending"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(made: Path, words: list[str], sentence: str, capsys) -> None:
    assert sentence in refusal(capsys, "algorithm", str(made), *words)
