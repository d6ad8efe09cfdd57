"""One flipped bit must never change what is read: it is refused, or nothing that is read has changed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.cli.main import run as run_command
from bindscope.errors import BindscopeError
from bindscope.runs.check import check_folder, check_run
from bindscope.runs.directory import Run
from bindscope.runs.execute import resume_run, train_run
from bindscope.runs.files import seal, write_atomically
from bindscope.runs.results import read_result, write_dataset
from bindscope.runs.series import Series
from damage import KINDS, damage_file
from rewriting import rewrite_manifest

FORMATS = Path(__file__).parent / "formats"


@pytest.fixture
def measured(run: Run) -> Run:
    """A finished run with a result."""
    values = xr.Dataset(
        {"success": (("layer", "position"), np.linspace(0, 1, 12).reshape(3, 4))},
        coords={"position": ["rhs 1", "rhs 2", "query", "colon"]},
        attrs={"names": 2, "n": 64},
    )
    run.save_result("chain", values)
    return run


def read_manifest_of(run: Path) -> Any:
    return Run.open(run).manifest


def read_state_of(run: Path) -> Any:
    state = Run.open(run).load_state()
    assert state is not None
    tensors = {**state.weights, **state.optimizer}
    return state.tally, {name: tensor.tolist() for name, tensor in tensors.items()}


READERS: dict[str, Callable[[Path], Any]] = {
    "manifest.json": read_manifest_of,
    "metrics.jsonl": lambda run: Run.open(run).metrics,
    "checkpoints/step_00000012.safetensors": lambda run: {
        name: tensor.tolist() for name, tensor in Run.open(run).weights(12).items()
    },
    "optimizer/latest.json": read_state_of,
    "optimizer/step_00000012.safetensors": read_state_of,
    "results/chain.nc": lambda run: Run.open(run).result("chain").to_dict(),
}


@pytest.mark.parametrize("file", READERS)
def test_one_flipped_bit_is_refused_or_changes_nothing_that_is_read(measured: Run, file: str) -> None:
    read, path, rng = READERS[file], measured.path / file, np.random.default_rng(0)
    whole, content = read(measured.path), path.read_bytes()
    n_refused = 0
    for bit in rng.choice(8 * len(content), 120, replace=False).tolist():
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            found = read(measured.path)
        except BindscopeError:
            n_refused += 1
        else:
            assert found == whole
    assert n_refused > 60


@pytest.mark.parametrize("file", READERS)
@pytest.mark.parametrize("damage", [kind for kind in KINDS if kind != "bit flipped"])
def test_whatever_happens_to_a_file_is_named(
    measured: Run, file: str, damage: str, config: Any, tmp_path: Path
) -> None:
    path = measured.path / file
    if damage in ("of another run", "link"):
        other = train_run(config.__class__(**{**vars(config), "seed": 5}), tmp_path / "other", device="cpu", threads=1)
        other.save_result("chain", xr.Dataset({"success": ("x", [1.0])}))
    damage_file(path, damage, tmp_path / "other" / file, random.Random(0))
    found = check_run(measured.path)
    if file == "results/chain.nc" and damage in ("of another run", "link", "gone"):
        assert not found.damaged  # whole in itself: whoever wants it compares its key, and measures what is missing
    elif file == "optimizer/latest.json" and damage == "gone":
        assert not found.damaged  # the run has ended, and nothing is resumed
    else:
        assert any(str(measured.path) in sentence for sentence in found.damaged)


def test_a_state_of_another_run_is_not_resumed(half_done: Run, config: Any, tmp_path: Path) -> None:
    other = train_run(config.__class__(**{**vars(config), "seed": 5}), tmp_path / "other", device="cpu", threads=1)
    shutil.rmtree(half_done.path / "optimizer")
    shutil.copytree(other.path / "optimizer", half_done.path / "optimizer")
    with pytest.raises(BindscopeError, match="this state is of another run"):
        resume_run(half_done.path)


def test_a_run_whose_evaluations_are_gone_is_not_resumed(half_done: Run) -> None:
    (half_done.path / "metrics.jsonl").unlink()
    with pytest.raises(BindscopeError, match=r"metrics.jsonl: the record of evaluations is missing"):
        resume_run(half_done.path)


def test_a_result_that_is_damaged_but_readable_is_refused(tmp_path: Path) -> None:
    """A stored success of 1.47 is read without complaint where nothing says what was stored."""
    path = write_dataset(tmp_path / "chain.nc", xr.Dataset({"success": ("x", [0.47])}))
    stored = path.read_bytes()
    changed = stored.replace(np.float64(0.47).tobytes(), np.float64(1.47).tobytes())
    assert changed != stored
    path.write_bytes(changed)
    with pytest.raises(BindscopeError, match="this result is damaged"):
        read_result(path)


def test_other_programs_read_a_result_with_its_hash_behind_it(tmp_path: Path) -> None:
    path = write_dataset(tmp_path / "chain.nc", xr.Dataset({"success": ("x", [0.5, 0.25])}))
    assert xr.open_dataset(path).success.values.tolist() == [0.5, 0.25]


def test_a_folder_of_runs_and_datasets_is_checked_whole(measured: Run, tmp_path: Path) -> None:
    write_dataset(tmp_path / "experiment" / "seeds.nc", xr.Dataset({"a": ("x", [1.0])}))
    write_atomically(tmp_path / "experiment" / "cut.nc", seal(b"no netCDF"))
    found = {checked.path.name: checked for checked in check_folder(tmp_path)}
    assert set(found) == {"tiny", "seeds.nc", "cut.nc"}
    assert [name for name, checked in found.items() if checked.damaged] == ["cut.nc"]
    assert found["tiny"].n_files == 4 + len(measured.steps)  # manifest, evaluations, state, result, checkpoints


def test_what_is_no_part_of_a_run_is_noted(measured: Run, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("")
    (measured.path / "results" / "link.txt").symlink_to(tmp_path / "elsewhere")
    (measured.path / "checkpoints" / "step_00000099.safetensors").write_bytes(b"")
    (measured.path / "checkpoints" / ".writing-x").write_bytes(b"")
    found = check_run(measured.path)
    assert not found.damaged
    assert len(found.notes) == 3


def test_the_command_names_what_is_damaged(measured: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", str(measured.path)]) == 0
    assert f"whole    {measured.path}" in capsys.readouterr().out
    path = measured.path / "checkpoints" / "step_00000012.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\0\0")
    assert run_command(["check", str(measured.path)]) == 2
    said = capsys.readouterr().out
    assert f"damaged  {path}: this checkpoint is damaged" in said
    assert "1 damaged" in said
    assert run_command(["check", str(measured.path), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == str(measured.path)
    assert len(found["damaged"]) == 1


def test_a_run_of_format_1_is_read_resumed_and_written_in_the_present_format(tmp_path: Path) -> None:
    run = Run.open(shutil.copytree(FORMATS / "format-1", tmp_path / "old"))
    assert [record["step"] for record in run.metrics] == [0, 4]
    assert run.result("numbers").a.values.tolist() == [0, 1, 2]
    found = check_run(run.path)
    assert not found.damaged
    assert len(found.notes) == 2  # manifest and result have no hash
    resumed = resume_run(run.path)
    assert json.loads((run.path / "manifest.json").read_text())["format"] == 2
    assert [record["step"] for record in Run.open(run.path).metrics] == [0, 4, 8]
    again = train_run(resumed.config, tmp_path / "again", device="cpu", threads=1)
    for name, weight in again.weights("last").items():
        torch.testing.assert_close(resumed.weights("last")[name], weight, rtol=1e-4, atol=1e-5)


def test_a_run_of_format_2_is_read_and_resumed(tmp_path: Path) -> None:
    run = Run.open(shutil.copytree(FORMATS / "format-2", tmp_path / "kept"))
    assert [record["step"] for record in run.metrics] == [0, 4]
    assert run.result("numbers").a.values.tolist() == [0, 1, 2]
    series = Series(run.path / "results" / "grid-series" / "heads")
    assert series.read(4, "key").success.values.tolist() == [[0, 1], [2, 3], [4, 5]]
    found = check_run(run.path)
    assert (found.damaged, found.notes, found.n_files) == ([], [], 9)
    resumed = resume_run(run.path)
    again = train_run(resumed.config, tmp_path / "again", device="cpu", threads=1)
    for name, weight in again.weights("last").items():
        torch.testing.assert_close(resumed.weights("last")[name], weight, rtol=1e-4, atol=1e-5)


def test_a_manifest_of_format_1_cannot_be_passed_off_with_a_hash(run: Run) -> None:
    rewrite_manifest(run.path, lambda content: content.update(format=1))
    with pytest.raises(BindscopeError, match="not what was recorded"):
        Run.open(run.path)
