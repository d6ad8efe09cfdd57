"""The circuit command finds what a run is known to do, and refuses what cannot be asked."""

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


def test_the_circuit_of_a_constructed_run_is_found_and_carries_every_answer(made: Path, capsys) -> None:
    found = json.loads(answer(capsys, "circuit", str(made), "--depth", "2", "--n", "12", "--json"))
    moves = {(move["layer"], move["head"], move["source"], move["target"]) for move in found["moves"]}
    depth = json.loads((made / "manifest.json").read_text())["config"]["task"]["max_depth"]
    assert moves == {(step.layer, step.head, step.source, step.target) for step in constructed_circuit(2, depth)}
    (effect,) = found["effects"]
    assert effect["patched"][0] == 1
    assert effect["alone"][0] == 1
    assert effect["without"][0] < 0.6


def test_the_frozen_circuit_is_tried_at_every_checkpoint(made: Path, capsys) -> None:
    said = answer(capsys, "circuit", str(made), "--depth", "1", "--n", "8", "--steps", "all")
    steps = len(list((made / "checkpoints").glob("*.safetensors")))
    assert said.count("[") == 3 * steps
    assert "query → colon" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--depth", "9"], "--depth: such pairs have depths 1 to"),
        (["--step", "77777"], "was not saved"),
        (["--least-success", "0"], "least_success: must lie above 0"),
    ],
)
def test_impossible_circuits_are_refused(made: Path, capsys, words: list[str], sentence: str) -> None:
    assert sentence in refusal(capsys, "circuit", str(made), *words)
