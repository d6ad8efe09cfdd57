from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.cli.main import run
from bindscope.measures.arithmetic.asked import ask_splits
from bindscope.measures.transplanting import measure_transplants
from bindscope.runs.directory import Run
from cli.answers import answer, refusal
from studies.made_runs import make_run

SETTINGS = {
    "task.modulus": 5,
    "task.n_variables": 4,
    "model.d_model": 16,
    "model.d_head": 8,
    "model.d_mlp": 16,
    "training.batch_size": 16,
    "training.evaluate_every": 4,
    "training.evaluation_size": 40,
    "training.save_every": 4,
    "training.checkpoints.every": 4,
}
PAIR = ("--from", "12", "--to", "0", "--n", "20")


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a very small model of modular addition."""
    folder = tmp_path_factory.mktemp("sums") / "runs"
    options = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
    arguments = ["train", "assign-add", "--name", "sums", "--out", str(folder), "--steps", "12", "--threads", "1"]
    assert run([*arguments, *options]) == 0
    return folder / "sums"


def test_a_transplant_prints_the_librarys_numbers(sums: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    parts = ("--part", "everything", "--part", "qk1 + variables")
    (found,) = json.loads(answer(capsys, "transplant", str(sums), *PAIR, *parts, "--json"))
    opened = Run.open(sums)
    asked = ask_splits(opened.config.task, np.random.default_rng(0), 20)  # type: ignore[arg-type]
    expected = measure_transplants(
        opened.checkpoint(0), opened.checkpoint(12), ["everything", "QK1 + variables"], asked
    )
    assert len(found["rows"]) == 2 * 9
    for row, cell in zip(found["rows"], expected.accuracy.values.flat):
        assert row["transplanted"][0] == cell
        if row["part"] == "everything":
            assert row["transplanted"] == row["donor"]
    text = answer(capsys, "transplant", str(sums), *PAIR, *parts)
    assert "from step 12 to step 0, 20 sums" in text
    assert text.count("all that differ") == 2


def test_parts_are_listed_with_their_meanings(sums: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, "transplant", str(sums), "--list")
    for words in ("QK2·OV1", "variable d", "position 14", "pattern 1 of =", "the donor", "where = attends in layer 1"):
        assert words in text
    assert "variable e" not in text


def test_numbers_and_figures_are_written(sums: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("parts.nc", "parts.svg"):
        answer(capsys, "transplant", str(sums), *PAIR, "--part", "MLP", "--out", str(tmp_path / name))
    kept = xr.load_dataset(tmp_path / "parts.nc", engine="h5netcdf")
    assert kept.accuracy.sizes == {"part": 1, "split": 9}
    assert (kept.attrs["donor_step"], kept.attrs["receiver_step"]) == (12, 0)
    assert (tmp_path / "parts.svg").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no spike with checkpoints close by"),
        (["--from", "12"], "name both checkpoints"),
        (["--from", "12", "--to", "5"], "step 5 was not saved"),
        ([*PAIR, "--part", "QK7"], "there is no part 'QK7'"),
        ([*PAIR[:4], "--n", "0"], "must be at least 1"),
        ([*PAIR, "--out", "numbers.txt"], "unknown ending 'txt'"),
    ],
)
def test_what_cannot_be_done_is_refused(
    sums: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    capsys.readouterr()
    assert sentence in refusal(capsys, "transplant", str(sums), *arguments)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("made") / "made").path


def test_a_run_on_programs_has_parts_of_its_own(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = answer(capsys, "transplant", str(made), "--list")
    for words in ("letters", "L0.H1.QK", "L2.OV", "unembedding", "where every position attends in head 1 of layer 0"):
        assert words in listed
    parts = ("--part", "everything", "--part", "L0.qk + L1-2.OV")
    text = answer(capsys, "transplant", str(made), "--n", "20", "--controls", "2", *parts)
    assert "from step 1,450 to step 1,000, 20 programs" in text
    assert text.count("misleading") == 2
    assert text.count("changed at random") == 4
    assert "all that differ" not in text
    assert "there is no part 'L7.QK'" in refusal(capsys, "transplant", str(made), "--part", "L7.QK")


def test_cells_are_trained_and_told(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--part", "L0", "--seeds", "1", "--most-steps", "2", "--every", "1", "--n", "60")
    text = answer(capsys, "retrain", str(made), *options, "--out", str(tmp_path / "cells.svg"))
    assert "step 500 with parts of step 1,450" in text
    assert "without any part: > 2" in text
    assert "No part, given early" in text
    assert (tmp_path / "cells.svg").stat().st_size > 5000
    found = json.loads(answer(capsys, "retrain", str(made), *options, "--json"))
    assert found["variables"]["left"] == {"dims": ["part", "condition", "seed"], "units": "1", "values": [[[None]] * 4]}
    for arguments, sentence in (
        (("--part", "L9"), "there is no part 'L9'"),
        (("--part", "L0.pattern"), "where a model attends"),
        (("--every", "400"), "must be at most the 300 steps"),
        (("--to", "5"), "step 5 was not saved"),
    ):
        assert sentence in refusal(capsys, "retrain", str(made), *arguments)


def test_a_run_on_sums_is_not_retrained(sums: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert "programs are for runs on binding" in refusal(capsys, "retrain", str(sums))
