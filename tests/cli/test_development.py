"""The development command puts curves in the order of their turns, measures what is missing when asked, and draws them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.answers import answer, refusal
from studies.made_runs import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "made").path


def test_the_table_stands_in_the_order_of_the_turns(made: Path, capsys) -> None:
    found = json.loads(answer(capsys, "development", str(made), "--json"))
    turns = {curve["title"]: curve["turned_at"] for curve in found["curves"].values()}
    said = answer(capsys, "development", str(made))
    order = [title for title in turns if turns[title] is not None]
    places = [said.index(f"  {title}  ") for title in sorted(order, key=lambda title: turns[title] or 0)]
    assert places == sorted(places)
    assert all(len(curve["steps"]) == len(curve["value"]) for curve in found["curves"].values())


@pytest.mark.parametrize("ending", ["svg", "nc"])
def test_curves_are_written_as_a_figure_or_as_numbers(made: Path, tmp_path: Path, ending: str, capsys) -> None:
    out = tmp_path / f"curves.{ending}"
    assert str(out) in answer(capsys, "development", str(made), "--out", str(out))
    assert out.stat().st_size > 1000


def test_what_cannot_be_asked_is_refused_in_one_sentence(made: Path, capsys) -> None:
    assert "unknown ending" in refusal(capsys, "development", str(made), "--out", "a.txt")
    assert "nowhere" in refusal(capsys, "development", "nowhere")
