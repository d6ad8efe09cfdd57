"""The command a report shows makes the same run again."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from bindscope.cli.main import run
from bindscope.runs.directory import Run
from bindscope.studies.framework.command import find_command
from cli.small_run import small_options


def make_again(command: str, out: Path) -> Run:
    """Give a command once more, into another directory."""
    launcher, *arguments = shlex.split(command)
    assert launcher == "bindscope"
    assert run([*arguments, "--out", str(out)]) == 0
    return Run.open(next(out.iterdir()))


def hashes(made: Run) -> dict[int, str]:
    return {step: kept.sha256 for step, kept in made.manifest.checkpoints.items()}


def test_the_command_of_a_run_makes_it_again_bit_for_bit(trained: Path, tmp_path: Path) -> None:
    original = Run.open(trained)
    command = find_command(original)
    assert command.startswith("bindscope train binding-tiny --name small ")
    again = make_again(command, tmp_path / "again")
    assert again.config == original.config
    assert hashes(again) == hashes(original)


def test_a_preset_trained_as_it_is_needs_no_settings(trained: Path) -> None:
    from dataclasses import replace

    from bindscope.runs.config import config_to_mapping
    from bindscope.studies.framework.presets import PRESETS

    manifest = Run.open(trained).manifest
    for name, preset in PRESETS.items():
        machine = {"device": "cuda", "threads": 2, "processes": 4}
        as_it_is = replace(manifest, name=name, config=config_to_mapping(preset.config), machine=machine)
        command = find_command(Run(trained, as_it_is))
        assert command == f"torchrun --nproc-per-node=4 -m bindscope train {name} --device cuda --threads 2"


def test_a_preset_with_epochs_is_trained_for_the_steps_asked_for(tmp_path: Path) -> None:
    shape = {"model.n_heads": 1, "model.d_head": 8, "model.d_model": 16, "model.d_mlp": 16, "task.alphabet": 16}
    shape |= {"training.batch_size": 16, "training.evaluation_size": 16}
    options = [word for key, value in shape.items() for word in ("--set", f"{key}={value}")]
    arguments = ["train", "templates-copy", "--steps", "3", "--threads", "1", "--device", "cpu", *options]
    assert run([*arguments, "--out", str(tmp_path / "first")]) == 0
    original = Run.open(tmp_path / "first" / "templates-copy")
    assert (original.steps[-1], original.manifest.total_steps) == (3, 3)
    command = find_command(original)
    assert "--steps 3" in command
    assert "epochs" not in command
    assert hashes(make_again(command, tmp_path / "again")) == hashes(original)


def test_a_run_kept_with_epochs_and_other_steps_is_made_again_by_its_epochs(trained: Path) -> None:
    from dataclasses import replace

    from bindscope.runs.config import config_to_mapping
    from bindscope.studies.framework.presets import find_preset

    kept = config_to_mapping(find_preset("templates-copy").config)
    kept["training"]["steps"] = 20  # which did nothing when it was trained
    manifest = replace(Run.open(trained).manifest, name="templates-copy", config=kept, machine={})
    assert find_command(Run(trained, manifest)) == "bindscope train templates-copy"


def test_the_command_of_an_imported_run_imports_the_same_files(trained: Path, tmp_path: Path) -> None:
    files = sorted(str(file) for file in (trained / "checkpoints").iterdir())
    task = ["--set", "lines=4", "--set", "max_depth=2"]
    arguments = ["import", *files, "--family", "binding", "--as", "taken", "--n", "20", *task]
    assert run([*arguments, "--out", str(tmp_path / "first")]) == 0
    original = Run.open(tmp_path / "first" / "taken")
    command = find_command(original)
    assert files[0] in command
    assert "--family binding --as taken" in command
    assert hashes(make_again(f"{command} --n 20", tmp_path / "again")) == hashes(original)


def test_a_report_shows_the_whole_command(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trajectory", str(trained), "--out", str(tmp_path / "life.svg"), "--html"]) == 0
    page = (tmp_path / "life.html").read_text(encoding="utf-8")
    assert all(option in page for option in small_options()[1::2])
