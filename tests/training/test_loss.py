from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import BindingTask
from bindscope.tasks.task import Batch, Layout
from bindscope.training.loss import batch_loss


def split_into_sequences(batch: Batch) -> Batch:
    """Every query block with its own copy of the program, each an ordinary sequence of its own."""
    blocks, positions = batch.layout.blocks, batch.layout.position_ids
    columns = [np.flatnonzero((blocks == 0) | (blocks == k)) for k in range(1, batch.layout.n_blocks + 1)]
    assert all((positions[own] == np.arange(len(own))).all() for own in columns)
    return Batch(
        tokens=np.concatenate([batch.tokens[:, own] for own in columns]),
        layout=Layout(np.arange(len(columns[0]))),
        target_positions=np.array([len(columns[0]) - 1]),
        targets=np.concatenate([batch.targets[:, [k]] for k in range(len(columns))]),
    )


def loss_and_gradient(model: nn.Module, batch: Batch, loss: str) -> tuple[float, dict[str, torch.Tensor]]:
    model.zero_grad()
    value = batch_loss(model, batch, loss)
    value.backward()
    return value.item(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("loss", ["answer", "all"])
@pytest.mark.parametrize(
    "changes", [{}, {"positions": "learned", "norm": "none"}, {"identity_qk": True, "identity_vo": True}]
)
def test_queries_that_share_a_program_have_the_loss_and_gradient_of_separate_sequences(make_model, task, loss, changes):
    model = make_model(**changes).double()
    shared = task.sample_batch(np.random.default_rng(1), 5)
    assert shared.layout.n_blocks == 3
    together, gradients = loss_and_gradient(model, shared, loss)
    apart, expected = loss_and_gradient(model, split_into_sequences(shared), loss)
    assert together == pytest.approx(apart, abs=1e-12)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=1e-11, msg=name)


def test_seeing_another_block_would_change_the_loss(make_model, task):
    """What the test above rules out does make a difference."""
    shared = task.sample_batch(np.random.default_rng(1), 5)
    leaking = replace(shared, layout=Layout(shared.layout.position_ids))
    model = make_model(init=make_model().config.init).double()
    torch.nn.init.normal_(model.blocks[0].attention.qkv.weight)
    assert batch_loss(model, shared).item() != pytest.approx(batch_loss(model, leaking).item(), abs=1e-6)


@pytest.mark.parametrize("loss", ["answer", "all"])
def test_the_loss_of_a_batch_is_the_mean_over_its_rows(make_model, task, loss):
    model = make_model().double()
    batch = task.sample_batch(np.random.default_rng(2), 6)
    rows = [batch_loss(model, batch.take(slice(i, i + 1)), loss).item() for i in range(6)]
    assert batch_loss(model, batch, loss).item() == pytest.approx(np.mean(rows), abs=1e-12)


def test_a_weight_counts_a_target_as_often_as_it_says(make_model, task):
    model = make_model().double()
    batch = task.sample_batch(np.random.default_rng(3), 4)
    weighted = replace(batch, weights=np.array([1, 3, 0], np.float32))
    repeated = replace(
        batch, target_positions=batch.target_positions[[0, 1, 1, 1]], targets=batch.targets[:, [0, 1, 1, 1]]
    )
    assert batch_loss(model, weighted).item() == pytest.approx(batch_loss(model, repeated).item(), abs=1e-7)


def test_a_model_that_knows_nothing_has_the_entropy_of_the_vocabulary(make_model, task):
    model = make_model()
    nn.init.zeros_(model.unembed.weight)
    batch = task.sample_batch(np.random.default_rng(4), 4)
    for loss in ("answer", "all"):
        assert batch_loss(model, batch, loss).item() == pytest.approx(np.log(len(task.vocabulary)), abs=1e-6)


class Constant(nn.Module):
    """Answers one number everywhere."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor(value))

    def forward(self, tokens, layout=None, at=None):
        return self.value.expand(tokens.shape[0], tokens.shape[1] if at is None else len(at), 1)


def test_real_answers_are_scored_by_squared_error_and_refuse_next_token_targets():
    targets = np.array([[1.0], [-1.0], [2.0]], np.float32)
    batch = Batch(np.zeros((3, 4), np.int64), Layout(np.arange(4)), np.array([3]), targets)
    assert batch_loss(Constant(0.5), batch).item() == pytest.approx(((0.5 - targets) ** 2).mean())
    with pytest.raises(BindscopeError, match="'all' needs tokens"):
        batch_loss(Constant(0.5), batch, "all")


def test_each_column_is_asked_once_however_many_targets_read_it(make_model):
    asked = []

    class Counting(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, tokens, layout, at):
            asked.append(tokens.shape[1] if at is None else len(at))
            return self.inner(tokens, layout, at)

    task = BindingTask(lines=3, max_depth=2, queries=3)
    batch = task.sample_batch(np.random.default_rng(0), 2)
    batch_loss(Counting(make_model()), batch, "all")
    batch_loss(Counting(make_model()), batch, "answer")
    assert asked == [batch.tokens.shape[1], 3]
