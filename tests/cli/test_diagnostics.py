"""The diagnostics of a made run: printed, drawn, and asked which of them announces the end of the plateau."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.answers import answer, refusal
from studies.made_runs import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "made", steps=(0, 300, 400, 500, 600, 800, 1000, 1450, 2000)).path


def test_table_and_figure(made: Path, tmp_path: Path, capsys) -> None:
    said = answer(capsys, "diagnostics", str(made), "--steps", "0,last", "--n", "16", "--out", str(tmp_path / "d.svg"))
    assert "repetition of answers" in said
    assert "gradient signal-to-noise" in said
    assert "Plateau diagnostics" in (tmp_path / "d.svg").read_text()


def test_weights_that_do_not_change_announce_nothing(made: Path, capsys) -> None:
    """Until the made run answers, its weights are one and the same checkpoint, so no diagnostic can leave its range before."""
    (found,) = json.loads(answer(capsys, "announce", str(made), "--json"))
    announces = dict(zip(found["coordinates"]["number"], found["variables"]["announces"]["values"], strict=True))
    assert not any(value for number, value in announces.items() if number != "evaluation loss")
    table = answer(capsys, "announce", str(made))
    assert "follows_chain leaves its range at step" in table
    assert "base rate" in table


def test_the_figure_of_a_run_is_drawn_over_its_phases(made: Path, tmp_path: Path, capsys) -> None:
    answer(capsys, "figure", str(made), "diagnostics", "--out", str(tmp_path / "f.svg"))
    assert "repetition of answers" in (tmp_path / "f.svg").read_text()


def test_sums_have_no_plateau_of_programs(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "this run is on other examples" in refusal(capsys, "announce", "assign-add")


def test_without_names_runs_that_cannot_tell_are_said_beside_those_that_can(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    said = answer(capsys, "announce")
    assert "binding-plain: plateau from step" in said
    assert "binding-deep: departure: fewer than two steps were measured" in said
    assert "fewer than two steps were measured" in refusal(capsys, "announce", "binding-deep")
