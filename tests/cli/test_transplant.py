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
    for words in ("QK2·OV1", "variable d", "position 14", "pattern 1 of =", "the donor", "where = looks in layer 1"):
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


def test_a_run_on_programs_has_no_such_parts(workplace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert "sums are for runs on assign_add" in refusal(capsys, "transplant", "small")
