from __future__ import annotations

import dataclasses
import json

import pytest

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.runs.config import (
    DatasetConfig,
    RunConfig,
    config_from_mapping,
    config_to_mapping,
    derive_seed,
    fit_model,
    list_settings,
    override,
)
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.binding import BindingTask
from bindscope.tasks.templates import TemplateTask
from bindscope.training.config import TrainingConfig


def config_for(task) -> RunConfig:
    return RunConfig("some-run", task, fit_model(ModelConfig(1, 1), task))


CONFIGS = [config_for(BindingTask()), config_for(AssignAddTask()), config_for(TemplateTask())]


def to_text(value) -> str:
    if isinstance(value, tuple):
        return ",".join(map(to_text, value))
    return "none" if value is None else str(value)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.task.family)
def test_a_config_survives_json(config):
    assert config_from_mapping(json.loads(json.dumps(config_to_mapping(config)))) == config


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.task.family)
def test_every_setting_written_as_text_is_read_back_as_itself(config):
    keys = [
        key
        for key in list_settings(config)
        if not key.startswith(("dataset.", "baseline.", "start.", "task.curriculum."))
    ]  # which are none here
    assert "training.optimizer.lr" in keys
    for key in keys:
        value = config
        for part in key.split("."):
            value = getattr(value, part)
        assert override(config, {key: to_text(value)}) == config, key
        assert override(config, {key: value}) == config, key


def test_text_becomes_the_type_of_the_setting():
    config = override(
        CONFIGS[0],
        {
            "training.optimizer.lr": "3e-4",
            "training.optimizer.betas": "0.95, 0.99",
            "training.steps": "1e3",
            "training.clip": "none",
            "training.checkpoints.keep": "10,20",
            "training.schedule.kind": "linear",
            "model.tied": "true",
            "seed": 7,
        },
    )
    assert config.training.optimizer.lr == 3e-4
    assert config.training.optimizer.betas == (0.95, 0.99)
    assert config.training.steps == 1000
    assert config.training.clip is None
    assert config.training.checkpoints.keep == (10, 20)
    assert config.training.schedule.kind == "linear"
    assert config.model.tied is True
    assert config.seed == 7


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (
            "training.optimiser.lr",
            "1",
            r"unknown setting 'training.optimiser.lr'. Did you mean 'training.optimizer.lr'\?",
        ),
        ("trainin.steps", "1", r"Did you mean 'training.steps'\?"),
        ("task.line", 3, r"Did you mean 'task.lines'\?"),
        ("training.steps.more", 3, "unknown setting 'training.steps.more'"),
        ("training.steps", "many", "training.steps: expected a number, got 'many'"),
        ("training.steps", "1.5", "training.steps: expected a whole number"),
        ("training.steps", 0, "training.steps: must be at least 1"),
        ("training.loss", "answers", r"training.loss: 'answers' is not a choice. Did you mean 'answer'\?"),
        ("model.tied", "maybe", "model.tied: expected bool"),
        ("model.tied", 1, "model.tied: expected bool"),
        ("name", "a/b", "cannot name a directory"),
        ("seed", -1, "seed: must not be negative"),
    ],
)
def test_a_bad_override_is_refused_with_its_location(key, value, sentence):
    with pytest.raises(BindscopeError, match=sentence):
        override(CONFIGS[0], {key: value})


def test_the_model_follows_a_task_that_changes_unless_it_is_given_too():
    shorter = override(CONFIGS[0], {"task.lines": 8, "task.max_depth": 3})
    assert shorter.model.n_positions == shorter.task.n_positions < CONFIGS[0].model.n_positions
    roomy = override(CONFIGS[0], {"task.lines": 8, "model.n_positions": 100})
    assert roomy.model.n_positions == 100
    with pytest.raises(BindscopeError, match=r"model.n_positions: the binding task needs at least"):
        override(CONFIGS[0], {"model.n_positions": 3})


def test_a_fixed_dataset_can_be_asked_for_by_keys_and_sets_the_number_of_steps():
    fixed = override(
        CONFIGS[0],
        {"training.data": "fixed", "training.epochs": 15, "training.batch_size": 64, "dataset.train": "450_000"},
    )
    assert fixed.dataset == DatasetConfig()
    assert fixed.total_steps == 15 * (450_000 // 64)
    with pytest.raises(BindscopeError, match=r"dataset: give its sizes with training.data = 'fixed'"):
        override(CONFIGS[0], {"training.data": "fixed", "training.epochs": 1})
    with pytest.raises(BindscopeError, match="do not fill one batch"):
        override(fixed, {"dataset.train": 10})


def test_a_number_of_steps_takes_the_place_of_epochs():
    sizes = {"training.data": "fixed", "training.batch_size": 64, "dataset.train": 640}
    fixed = override(CONFIGS[0], {**sizes, "training.epochs": 15})
    for steps in (20, 1000):
        shorter = override(fixed, {"training.steps": steps})
        assert (shorter.total_steps, shorter.n_examples) == (steps, fixed.n_examples)
        assert config_from_mapping(config_to_mapping(shorter)) == shorter
    assert override(CONFIGS[0], {**sizes, "training.steps": 20}).total_steps == 20
    assert override(shorter, {"training.epochs": 2}).total_steps == 20
    with pytest.raises(BindscopeError, match=r"training.epochs: only with data = 'fixed'"):
        override(CONFIGS[0], {"training.epochs": 3})


def test_a_kept_config_with_epochs_means_them_whatever_its_steps():
    kept = config_to_mapping(override(CONFIGS[2], {"training.data": "fixed", "training.epochs": 10}))
    kept["training"]["steps"] = 20
    assert config_from_mapping(kept).total_steps == 10 * (CONFIGS[2].task.alphabet // 64)


def test_template_tasks_bring_their_own_training_set():
    fixed = override(
        CONFIGS[2], {"training.data": "fixed", "training.epochs": 10, "training.batch_size": 100, "task.alphabet": 256}
    )
    assert fixed.total_steps == 20
    assert fixed.model.d_vocab == len(fixed.task.vocabulary)
    with pytest.raises(BindscopeError, match=r"set task.alphabet instead"):
        override(fixed, {"dataset.train": 100})
    with pytest.raises(BindscopeError, match="the 50 training examples do not fill one batch of 100"):
        override(fixed, {"task.alphabet": 50})


def test_labels_may_be_numbers_or_symbols():
    custom = {"task.name": "custom", "task.templates": "αα,αβ"}
    assert override(CONFIGS[2], custom | {"task.labels": "1,-1"}).task.labels == (1.0, -1.0)
    assert override(CONFIGS[2], custom | {"task.labels": "α,β"}).task.labels == ("α", "β")


def test_next_token_training_is_refused_where_it_makes_no_sense():
    with pytest.raises(BindscopeError, match="needs an output per token"):
        override(CONFIGS[1], {"training.loss": "all"})
    with pytest.raises(BindscopeError, match="already sees"):
        override(CONFIGS[0], {"training.loss": "all", "model.causal": False})


def test_a_model_of_another_vocabulary_is_refused():
    task = BindingTask()
    with pytest.raises(BindscopeError, match=r"model.d_vocab: the binding task needs 40, got 39"):
        RunConfig("x", task, ModelConfig(39, task.n_positions), TrainingConfig())


def test_every_purpose_and_every_run_has_seeds_of_its_own():
    seeds = [seed for number in range(20) for seed in dataclasses.replace(CONFIGS[0], seed=number).seeds.values()]
    assert len(set(seeds)) == len(seeds) == 80
    assert derive_seed(3, "model") == derive_seed(3, "model")
