"""The commands on binding identifiers and lookbacks give a constructed run what it was written to do, and draw it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.answers import answer, refusal
from studies.made_runs import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "made").path


def test_mean_differences_swap_the_constructed_run_only_before_it_reads_names(made: Path, capsys) -> None:
    found = json.loads(answer(capsys, "identifiers", str(made), "--n", "8", "--json"))
    row = next(row for row in found["rows"] if (row["part"], row["intervention"]) == ("value", "mean"))
    assert row["swapped"] == [1, 0, 0, 0]
    assert row["kept"] == [0, 1, 1, 1]


def test_addresses_pointers_and_payloads_of_the_constructed_run(made: Path, capsys) -> None:
    found = json.loads(answer(capsys, "lookbacks", str(made), "--n", "8", "--json"))
    rows = {(row["patched"], row["brings"]): row["fractions"] for row in found["rows"]}
    assert rows["right-hand sides", "both"] == [0, 1, 0, 0]
    assert rows["names, address frozen", "exchanged"] == [0, 0, 0, 0]
    assert rows["end", "pointer"] == [1, 1, 0, 0]


@pytest.mark.parametrize(("command", "words"), [("identifiers", "two bindings"), ("lookbacks", "payload of a lookup")])
def test_tables_and_figures(made: Path, tmp_path: Path, command: str, words: str, capsys) -> None:
    said = answer(capsys, command, str(made), "--n", "8", "--out", str(tmp_path / "a.svg"))
    assert "L3" in said
    assert words in (tmp_path / "a.svg").read_text()
    assert "--n: must be at least 8" in refusal(capsys, command, str(made), "--n", "4")
