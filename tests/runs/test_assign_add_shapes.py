"""Models of sums of other shapes than the published one, and sums of other operators, are trained and recorded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.evaluation import read_answers
from bindscope.runs.config import RunConfig, override
from bindscope.runs.execute import train_run
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.trajectory import trajectory_dataset
from bindscope.studies.plots.panels import trajectory_panels

TINY = {
    "name": "tiny",
    "task.modulus": 5,
    "task.n_variables": 4,
    "model.d_model": 32,
    "model.d_head": 16,
    "model.d_mlp": 64,
    "model.init.std": 0.1,
    "training.steps": 60,
    "training.batch_size": 128,
    "training.evaluate_every": 30,
    "training.evaluation_size": 50,
    "training.optimizer.lr": 1e-2,
}


def tiny(**changes) -> RunConfig:
    return override(
        find_preset("assign-add").config, {**TINY, **{key.replace("__", "."): changes[key] for key in changes}}
    )


@pytest.mark.parametrize(
    "shape",
    [
        {"n_layers": 1, "mlp_layers": (0,)},
        {"n_layers": 3, "mlp_layers": (2,)},
        {"n_layers": 3, "mlp_layers": None},
        {"n_layers": 2, "mlp_layers": None},
        {"n_layers": 2, "n_heads": 2},
    ],
)
def test_a_model_with_other_layers_heads_or_mlps_learns_and_answers_as_it_was_trained(shape, tmp_path):
    config = tiny(**{f"model__{name}": value for name, value in shape.items()})
    run = train_run(config, tmp_path / "tiny", device="cpu", threads=1)
    dataset = trajectory_dataset(run.metrics, family=run.config.task.family)
    loss = dataset.split_loss.sel(split="0tr").values
    assert loss[-1] < 0.8 * loss[0]
    model, batch = run.checkpoint(), config.task.sample_split(np.random.default_rng(0), 40, "2tr")
    whole = (
        model(torch.from_numpy(batch.tokens), layout=batch.layout).detach().numpy()
    )  # the plain way, at every column
    assert read_answers(model, batch) == pytest.approx(whole[:, -1], abs=1e-4)


@pytest.mark.parametrize(("operator", "modulus"), [("-", 5), ("*", 6), ("symmetric", 6), ("dihedral", 8)])
def test_runs_of_any_operator_are_recorded_with_halves_only_where_a_swap_is_the_same_sum(operator, modulus, tmp_path):
    config = tiny(task__operator=operator, task__modulus=modulus, training__steps=2, training__evaluate_every=1)
    dataset = trajectory_dataset(
        train_run(config, tmp_path / "tiny", device="cpu", threads=1).metrics, family="assign_add"
    )
    assert dataset.attrs["family"] == "assign_add"
    assert dataset.sizes["split"] == 9
    assert bool(np.isfinite(dataset.half_accuracy).any()) == (operator == "*")
    assert ("swap" in [panel.name for panel in trajectory_panels(dataset)]) == (operator == "*")


def test_an_mlp_in_a_layer_that_is_not_there_is_refused():
    with pytest.raises(BindscopeError, match=r"model\.mlp_layers"):
        tiny(model__n_layers=1)


def test_a_run_recorded_before_there_were_options_is_the_same_configuration():
    config = find_preset("assign-add").config
    assert override(config, {"task.n_restricted": "2"}) == config
    assert override(config, {"task.n_restricted": "3"}) == replace(config, task=replace(config.task, n_restricted=3))
