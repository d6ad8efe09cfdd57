from __future__ import annotations

import json
from pathlib import Path

import pytest

from bindscope.cli.cost import measure_cost
from bindscope.cli.main import run
from bindscope.cli.table import format_duration
from bindscope.cli.train import configure
from bindscope.runs.config import config_to_mapping, override
from bindscope.studies.framework.experiments import all_experiments, plan_cells
from bindscope.studies.framework.presets import PRESETS, find_preset
from bindscope.studies.symbols.experiments.define import EXPERIMENTS
from cli.small_run import SMALL


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_printed_as_toml_is_the_same_preset_again(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "printed.toml"
    assert run(["presets", name]) == 0
    file.write_text(capsys.readouterr().out)
    assert configure(str(file)) == PRESETS[name].config
    assert run(["presets", str(file)]) == 0  # and of the file all settings are printed alike
    file.write_text(capsys.readouterr().out)
    assert configure(str(file)) == PRESETS[name].config


def test_a_settings_file_says_what_differs_and_names_the_run(tmp_path: Path) -> None:
    file = tmp_path / "wide.toml"
    file.write_text('preset = "binding-tiny"\n[model]\nd_model = 128\n[training]\nclip = "none"\n')
    expected = {"name": "wide", "model.d_model": 128, "training.clip": None, "seed": 3}
    assert configure(str(file), ["seed=3"]) == override(PRESETS["binding-tiny"].config, expected)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seed = 1\n", "begin it with the preset to start from"),
        ('preset = "binding-tyni"\n', "there is no preset 'binding-tyni'. Did you mean 'binding-tiny'"),
        ('preset = "binding-tiny"\n[training]\nstps = 5\n', "unknown setting 'training.stps'. Did you mean"),
        ('preset = "binding-tiny"\n[task]\nlines = "many"\n', "task.lines: expected a number"),
        ('preset = "binding-tiny"\n[task]\nfamily = "templates"\n', "the preset is of the family 'binding'"),
        ("preset = \n", "not valid TOML"),
        (None, "cannot be read"),
    ],
)
def test_a_settings_file_that_is_wrong_is_refused_by_its_name(
    text: str | None, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    if text is not None:
        file.write_text(text)
    assert run(["train", str(file), "--out", str(tmp_path / "runs")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "mine.toml" in said
    assert sentence in said
    assert not (tmp_path / "runs").exists()


def test_every_preset_is_listed_with_its_size(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["presets"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in PRESETS)
    assert "37.8M" in listed


def test_the_list_says_what_the_experiments_of_study_3_take(capsys: pytest.CaptureFixture[str]) -> None:
    run(["presets"])
    listed = capsys.readouterr().out
    run(["experiment"])
    rows = {row.split()[0]: row for row in capsys.readouterr().out.splitlines() if row}
    for experiment in EXPERIMENTS:
        taken = format_duration(experiment.usual_seconds)
        assert f"{experiment.name} {taken}" in listed
        assert taken in rows[experiment.name]


def test_a_preset_with_a_fixed_set_of_sequences_is_measured_in_as_few_steps() -> None:
    small = {"model.n_heads": 1, "model.d_head": 8, "task.alphabet": 8, "training.batch_size": 8}
    config = override(find_preset("templates-same-different").config, small | {"training.evaluation_size": 8})
    cost = measure_cost(config, n_steps=6)
    assert cost.steps == config.total_steps == 1000
    assert cost.seconds_per_step > 0


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_can_be_trained_for_a_number_of_steps(name: str) -> None:
    assert configure(name, shorthands={"training.steps": 20}).total_steps == 20


def test_every_experiment_can_be_trained_for_a_number_of_steps() -> None:
    for experiment in all_experiments().values():
        assert {cell.config.total_steps for cell in plan_cells(experiment, [1], steps=20)} == {20}


def test_a_preset_is_printed_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    run(["presets", "assign-add", "--json"])
    settings = json.loads(capsys.readouterr().out)
    assert settings == config_to_mapping(find_preset("assign-add").config)


@pytest.mark.parametrize(
    ("arguments", "sentence"), [(["binding-papr"], "Did you mean 'binding-paper'?"), (["--measure"], "name the preset")]
)
def test_what_is_no_preset_is_refused(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["presets", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_preset_is_measured_without_leaving_a_run_behind() -> None:
    config = override(find_preset("binding-tiny").config, {key: str(value) for key, value in SMALL.items()})
    cost = measure_cost(config, n_steps=6)
    assert 0 < cost.seconds_per_step < 60
    assert cost.megabytes > 50
    assert cost.seconds == cost.seconds_per_step * config.total_steps
