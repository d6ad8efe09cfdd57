"""The coefficient command measures a made run, draws its traces, and refuses what cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bindscope.cli.coefficient import format_known
from bindscope.measures.learning_coefficient.calibration import Calibrated
from bindscope.measures.learning_coefficient.estimate import Estimate
from cli.answers import answer, refusal
from studies.made_runs import make_run

QUICK = ("--n", "128", "--chains", "2", "--draws", "8", "--burn-in", "4")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "made", steps=(0, 2000)).path


def test_table_figure_and_numbers(made: Path, tmp_path: Path, capsys) -> None:
    said = answer(capsys, "coefficient", str(made), "--steps", "all", *QUICK, "--out", str(tmp_path / "c.svg"))
    assert "local learning coefficient of all weights on all questions; n = 128" in said
    assert "traces" in (tmp_path / "c.svg").read_text()


def test_a_head_and_a_kind_of_question(made: Path, capsys) -> None:
    found = json.loads(
        answer(capsys, "coefficient", str(made), *QUICK, "--part", "L0.H0", "--data", "misleading", "--json")
    )
    assert found["attributes"]["part"] == "L0.H0"
    assert np.shape(found["variables"]["trace"]["values"]) == (1, 2, 8)


def test_chains_that_diverge_are_no_number(made: Path, capsys) -> None:
    said = answer(capsys, "coefficient", str(made), *QUICK, "--step-size", "1000")
    assert "the chains diverged" in said


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--chains", "1"], "--chains: must be at least 2"),
        (["--draws", "10", "--burn-in", "9"], "--burn-in: must leave at least 4"),
        (["--step-size", "0"], "--step-size: must be above 0"),
        (["--part", "L9"], "part 'L9': this model has none of that name"),
        (["--data", "depth=9"], "too few"),
        (["--steps", "7"], "step 7 was not saved"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(made: Path, words: list[str], sentence: str, capsys) -> None:
    assert sentence in refusal(capsys, "coefficient", str(made), *words)


def test_known_losses_are_a_table() -> None:
    found = Estimate(4.1, 3.9, 4.3, (4.0, 4.2), False, 0.0, True, 0.0, 1.0, 0.1, 8)
    table = format_known([Calibrated("½ Σ w² in 8 parameters", 8, 4.0, found)])
    assert "4.10" in table
    assert "3.90 to 4.30" in table
