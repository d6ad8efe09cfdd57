"""``bindscope reassignment`` tells of a constructed run what it was written to do, and of a run without reassignment that it has none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.answers import answer, refusal
from studies.made_runs import AGAIN, make_run


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "again", steps=(0, 2000), task=AGAIN).path


def test_writes_overwrites_and_states_of_the_constructed_run(again: Path, capsys) -> None:
    found = json.loads(answer(capsys, "reassignment", str(again), "--n", "8", "--json"))
    rows = {(row["measure"], row["where"], row["what"]): row["fractions"] for row in found["rows"]}
    assert rows["write patched in", "query: last write", "last"] == [1, 1, 0, 0, 0]
    assert rows["overwrite undone", "constant: name", "undone"] == [1, 0, 0, 0, 0]
    assert rows["overwrite undone", "constant: value", "undone"] == [0, 1, 0, 0, 0]
    assert found["answered"]["query"]["right"] == 1
    assert "no running state is found" in found["finding"]


def test_the_table_and_the_figure(again: Path, tmp_path: Path, capsys) -> None:
    said = answer(capsys, "reassignment", str(again), "--n", "8", "--step", "first", "--out", str(tmp_path / "a.svg"))
    assert "nothing can be said of what holds the overwrite" in said
    assert "What becomes of a variable" in (tmp_path / "a.svg").read_text()
    assert "--n: must be at least 8" in refusal(capsys, "reassignment", str(again), "--n", "4")


def test_a_run_without_reassignment_says_so(capsys) -> None:
    assert "these programs assign every variable once" in refusal(capsys, "reassignment", "binding-plain")


def test_claims_are_judged_on_a_run_with_reassignment(again: Path, capsys) -> None:
    found = json.loads(answer(capsys, "verify", str(again), "--claim", "VB2", "--claim", "VB3", "--n", "16", "--json"))
    assert [claim["id"] for claim in found["claims"]] == ["VB2", "VB3"]
    assert all(claim["reason"] for claim in found["claims"])
