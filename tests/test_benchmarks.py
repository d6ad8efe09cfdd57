"""What benchmarks say of themselves: contenders take turns, ratios are those of one round, and the page is what was measured."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(name)


def test_the_page_is_written_from_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    page = load("page", monkeypatch)
    measured = json.loads(page.MEASURED.read_text(encoding="utf-8"))
    assert page.PAGE.read_text(encoding="utf-8") == page.render(measured)
    assert {command for _, command in page.every_command()} == set(measured["rows"])


def test_everybody_has_one_turn_in_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, said = load("turns", monkeypatch), []
    taken = turns.take_turns({name: lambda name=name: said.append(name) or len(said) for name in ("ours", "a", "b")}, 3)
    assert said == ["ours", "a", "b", "b", "a", "ours", "ours", "a", "b"]
    assert taken == {"ours": [1, 6, 7], "a": [2, 5, 8], "b": [3, 4, 9]}


def test_ratios_compare_what_was_measured_in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = load("turns", monkeypatch)
    seconds = {"ours": [1.0, 2.0, 4.0], "slow": [3.0, 6.0, 16.0], "fast": [2.0, 5.0, 8.0]}
    assert turns.fastest(seconds) == "fast"
    assert turns.compare(seconds, "slow") == turns.Ratio(3.0, 3.0, 4.0, 3)


def test_rows_are_noted_only_where_somebody_asks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    turns = load("turns", monkeypatch)
    monkeypatch.delenv(turns.RECORDS, raising=False)
    turns.note("a", "not noted")
    monkeypatch.setenv(turns.RECORDS, str(tmp_path / "rows"))
    turns.note("a", "noted", ratio=turns.Ratio(2.0, 1.0, 3.0, 5), peer="b", goal=2)
    (row,) = map(json.loads, (tmp_path / "rows").read_text().splitlines())
    assert row["what"] == "noted"
    page = load("page", monkeypatch)
    assert page.met(row)
    assert not page.met(row | {"goal": 2.5})
    assert page.value_of(row) == "2× [1–3]"
