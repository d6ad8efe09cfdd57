"""Weights that are frozen stay to the bit, whatever the optimizer does, and everything else is trained."""

from __future__ import annotations

import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.interventions.transplant import mark_parts
from bindscope.training.config import OptimizerConfig, TrainingConfig
from bindscope.training.loop import train


def trained(model, stream, optimizer: str = "adamw", **settings):
    config = TrainingConfig(
        steps=4, batch_size=8, evaluate_every=4, optimizer=OptimizerConfig(optimizer, lr=1e-2, weight_decay=0.5)
    )
    train(model, stream, config, evaluate=lambda model: {"watched": {}}, **settings)
    return {name: value.detach().clone() for name, value in model.named_parameters()}


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("part", ["L0.H1.QK", "L1.OV", "MLP", "embeddings"])
def test_a_frozen_part_does_not_move_by_a_bit_while_all_else_does(make_model, stream, part, optimizer):
    model = make_model()
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    marks = mark_parts(model, [part])
    after = trained(model, stream, optimizer, frozen=marks)
    for name, value in after.items():
        mark = marks.get(name, torch.zeros_like(value, dtype=torch.bool))
        assert torch.equal(value[mark], before[name][mark]), name
        moved = value[~mark] != before[name][~mark]
        assert not moved.numel() or moved.float().mean() > 0.5, name  # a token that no batch has may stay


def test_nothing_frozen_is_plain_training_and_everything_frozen_is_none(make_model, stream):
    plain, nothing = trained(make_model(), stream), trained(make_model(), stream, frozen={})
    assert all(torch.equal(plain[name], nothing[name]) for name in plain)
    model = make_model()
    held = trained(model, stream, frozen=mark_parts(model, ["everything"]))
    assert all(torch.equal(held[name], value) for name, value in make_model().named_parameters())


def test_what_a_model_does_not_train_cannot_be_frozen(make_model, stream):
    with pytest.raises(BindscopeError, match="trains no 'somewhere'"):
        trained(make_model(), stream, frozen={"somewhere": torch.ones(2, dtype=torch.bool)})
