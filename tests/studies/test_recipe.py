"""Ablations differ from the preset in the named part alone, and a sweep of them stops and goes on."""

import dataclasses

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.runs.config import config_to_mapping, override
from bindscope.runs.sweep import train_sweep
from bindscope.studies.binding.experiments.recipe import ABLATIONS, ablation_configs, ablation_dataset
from bindscope.studies.framework.presets import find_preset

TINY = find_preset("binding-tiny").config
FLASH = override(
    TINY, {"training.steps": 4, "training.batch_size": 4, "training.evaluate_every": 2, "training.evaluation_size": 20}
)


def flatten(mapping, prefix=""):
    for key, value in mapping.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


@pytest.mark.parametrize("preset", ["binding-tiny", "binding-laptop"])
@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda ablation: ablation.name)
def test_an_ablation_changes_what_it_names_and_nothing_else(ablation, preset):
    config = find_preset(preset).config
    (ablated,) = ablation_configs(config, [0], [ablation.name])
    before, after = (dict(flatten(config_to_mapping(c))) for c in (config, ablated))
    changed = {key for key in before if before[key] != after[key]} - {"name"}
    allowed = set(ablation.changes) | ({"training.batch_size"} if "task.queries" in ablation.changes else set())
    assert changed <= allowed
    assert all(after[key] == value for key, value in ablation.changes.items() if key != "training.optimizer.lr")


def test_ablations_that_change_nothing_are_left_out():
    names = {config.name for config in ablation_configs(TINY, [0])}
    assert "no-relay-seed-0" in names
    assert "no-identity-seed-0" not in names
    assert "recipe-seed-0" in names


def test_one_query_a_program_trains_on_as_many_tokens():
    (config,) = ablation_configs(TINY, [0], ["one-query"])
    tokens = {c.training.batch_size * (4 * c.task.lines + 3 * c.task.queries) for c in (TINY, config)}
    assert max(tokens) / min(tokens) < 1.01


def test_a_sweep_trains_each_run_once_and_keeps_it(tmp_path):
    configs = ablation_configs(FLASH, [0, 1], ["recipe", "no-offsets"])
    first = {run.name: run for run in train_sweep(configs, tmp_path, jobs=2)}
    stamps = {name: (run.path / "manifest.json").stat().st_mtime_ns for name, run in first.items()}
    again = {run.name: run for run in train_sweep(configs, tmp_path)}
    assert first.keys() == again.keys() == {config.name for config in configs}
    assert stamps == {name: (run.path / "manifest.json").stat().st_mtime_ns for name, run in again.items()}
    dataset = ablation_dataset(again.values())
    assert dict(dataset.sizes) == {"ablation": 2, "seed": 2}
    assert np.isfinite(dataset.accuracy).all()
    assert (dataset.last_step == 4).all()


def test_a_sweep_refuses_a_directory_with_other_settings(tmp_path):
    (config,) = ablation_configs(FLASH, [0], ["recipe"])
    list(train_sweep([config], tmp_path))
    other = dataclasses.replace(config, seed=5)
    with pytest.raises(BindscopeError, match="other settings"):
        list(train_sweep([other], tmp_path))


def test_unknown_ablations_and_other_families_are_refused():
    with pytest.raises(BindscopeError, match="Did you mean 'no-offsets'"):
        ablation_configs(TINY, [0], ["no-offset"])
    with pytest.raises(BindscopeError, match="for binding presets"):
        ablation_configs(find_preset("assign-add").config, [0])
