"""The lean way through a model against the plain one: same answers, same gradients, in double precision."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from bindscope.model.config import ModelConfig
from bindscope.model.lean import is_lean, lean_residual
from bindscope.model.transformer import SILENT, Transformer
from bindscope.studies.framework.presets import find_preset
from bindscope.tasks.task import Layout

SMALL = ModelConfig(
    d_vocab=11,
    n_positions=9,
    d_out=7,
    n_layers=2,
    n_heads=1,
    d_model=12,
    d_head=6,
    d_mlp=20,
    activation="relu",
    positions="learned",
    norm="none",
    bias=False,
)


class _Listening:
    """A tap that changes nothing, and so keeps the model off its lean way."""

    def wants(self, layer: int, *names: str) -> bool:
        return False

    def __call__(self, name, layer, value):
        return value


@pytest.mark.parametrize("n_layers", [2, 3])
@pytest.mark.parametrize("mlp_layers", [None, (1,), ()])
@pytest.mark.parametrize("at", [[8], [3, 8]])
@pytest.mark.parametrize("blocks", [None, [0, 0, 0, 0, 1, 1, 1, 2, 2]])
def test_lean_and_plain_agree_in_answers_and_gradients(n_layers, mlp_layers, at, blocks):
    config = dataclasses.replace(SMALL, n_layers=n_layers, mlp_layers=mlp_layers)
    model = Transformer(config, torch.Generator().manual_seed(1)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 20  # sharp attention, so that a wrong form would show
    tokens = torch.randint(11, (16, 9), generator=torch.Generator().manual_seed(2))
    layout = Layout(np.arange(9), None if blocks is None else np.array(blocks))
    columns, weights = torch.tensor(at), torch.randn(16, len(at), 7, dtype=torch.float64)

    def answers_and_gradients(tap):
        model.zero_grad()
        answers = model(tokens, layout, columns, tap)
        (answers * weights).sum().backward()
        return answers.detach(), {name: parameter.grad.clone() for name, parameter in model.named_parameters()}

    assert is_lean(config, 16, len(at))
    lean, lean_gradients = answers_and_gradients(SILENT)
    plain, plain_gradients = answers_and_gradients(_Listening())
    torch.testing.assert_close(lean, plain)
    for name, gradient in plain_gradients.items():
        torch.testing.assert_close(lean_gradients[name], gradient, msg=name)


@pytest.mark.parametrize(
    "change",
    [
        {"norm": "layer"},
        {"bias": True},
        {"positions": "rope"},
        {"causal": False},
        {"n_heads": 2},
        {"n_layers": 1},
        {"dropout": 0.1},
        {"identity_qk": True},
        {"identity_vo": True},
    ],
)
def test_models_of_another_kind_go_the_plain_way(change):
    assert is_lean(SMALL, 16, 1)
    assert not is_lean(dataclasses.replace(SMALL, **change), 16, 1)


def test_few_rows_or_many_columns_go_the_plain_way():
    assert not is_lean(SMALL, 4, 1)
    assert not is_lean(SMALL, 16, 9)


def test_the_preset_of_sums_trains_the_lean_way(monkeypatch):
    config = find_preset("assign-add").config
    model = Transformer(config.model)
    called = []

    def watch(*arguments):
        called.append(arguments)
        return lean_residual(*arguments)

    monkeypatch.setattr("bindscope.model.transformer.lean_residual", watch)
    batch = config.task.sample_batch(np.random.default_rng(0), config.training.batch_size)
    model(torch.from_numpy(batch.tokens), batch.layout, torch.from_numpy(batch.target_positions))
    assert len(called) == 1
