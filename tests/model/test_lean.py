"""The lean way through a model against the plain one: same answers, same gradients, in double precision."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from bindscope.measures.evaluation import read_answers
from bindscope.model.config import ModelConfig
from bindscope.model.lean import has_lean_way, lean_residual, shorten
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import find_preset
from bindscope.tasks.loading import StreamLoader
from bindscope.tasks.task import Layout
from bindscope.training.loop import train

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


@pytest.mark.parametrize("n_layers", [2, 3])
@pytest.mark.parametrize("mlp_layers", [None, (1,), ()])
@pytest.mark.parametrize("at", [[8], [3, 8]])
@pytest.mark.parametrize("blocks", [None, [0, 0, 0, 0, 1, 1, 1, 2, 2]])
@pytest.mark.parametrize("gated", [False, True])
def test_lean_and_plain_agree_in_answers_and_gradients(n_layers, mlp_layers, at, blocks, gated):
    config = dataclasses.replace(SMALL, n_layers=n_layers, mlp_layers=mlp_layers, gated=gated)
    model = Transformer(config, torch.Generator().manual_seed(1)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 20  # sharp attention, so that a wrong form would show
    tokens = torch.randint(11, (16, 9), generator=torch.Generator().manual_seed(2))
    layout = Layout(np.arange(9), None if blocks is None else np.array(blocks))
    columns, weights = torch.tensor(at), torch.randn(16, len(at), 7, dtype=torch.float64)

    def answers_and_gradients(asked):
        model.zero_grad()
        answers = asked(tokens, layout, columns)
        (answers * weights).sum().backward()
        return answers.detach(), {name: parameter.grad.clone() for name, parameter in model.named_parameters()}

    lean, lean_gradients = answers_and_gradients(shorten(model))
    plain, plain_gradients = answers_and_gradients(model)
    torch.testing.assert_close(lean, plain)
    for name, gradient in plain_gradients.items():
        torch.testing.assert_close(lean_gradients[name], gradient, msg=name)


@pytest.mark.parametrize(
    "change",
    [
        {"norm": "layer"},
        {"norm": "rms"},
        {"parallel": True},
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
    assert has_lean_way(SMALL)
    assert not has_lean_way(dataclasses.replace(SMALL, **change))
    model = Transformer(dataclasses.replace(SMALL, **change))
    assert shorten(model) is model
    baseline = torch.nn.Linear(2, 2)
    assert shorten(baseline) is baseline


@pytest.fixture
def lean_calls(monkeypatch):
    """Every way through a model that was lean."""
    called = []

    def watch(*arguments):
        called.append(arguments)
        return lean_residual(*arguments)

    monkeypatch.setattr("bindscope.model.lean.lean_residual", watch)
    return called


def test_few_rows_or_many_columns_go_the_plain_way(lean_calls):
    model = Transformer(SMALL)
    answering, tokens = shorten(model), torch.zeros(16, 9, dtype=torch.long)
    for rows, at in ((4, [8]), (16, list(range(9))), (16, None)):
        columns = None if at is None else torch.tensor(at)
        assert torch.equal(answering(tokens[:rows], at=columns), model(tokens[:rows], at=columns))
    assert lean_calls == []
    answering(tokens, at=torch.tensor([8]))
    assert len(lean_calls) == 1


def test_sums_are_trained_and_evaluated_the_lean_way_and_a_model_asked_by_itself_goes_the_plain_one(lean_calls):
    config = find_preset("assign-add").config
    model = Transformer(config.model)
    batch = config.task.sample_batch(np.random.default_rng(0), config.training.batch_size)
    model(torch.from_numpy(batch.tokens), batch.layout, torch.from_numpy(batch.target_positions))
    assert lean_calls == []
    read_answers(model, batch)
    assert len(lean_calls) == 1
    loader = StreamLoader(config.task, 0, config.training.batch_size)
    one_step = dataclasses.replace(config.training, steps=1)
    train(model, loader, one_step, evaluate=lambda model: {"watched": [0.0]}, seed=0)
    assert len(lean_calls) == 2
