"""What a change of W_V W_O does to symbols: projections, readings and first-order steps against known answers."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from bindscope.errors import BindscopeError
from bindscope.measures.templates.copying import (
    Directions,
    find_directions,
    product_of,
    read_update,
    span_fraction,
    step_of_product,
)
from bindscope.measures.templates.early_copying import predict_early
from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.templates import TemplateTask
from bindscope.training.loss import batch_loss

WIDTH = 24


def draw_directions(n: int, seed: int = 0, width: int = WIDTH) -> Directions:
    rng = np.random.default_rng(seed)
    vectors = normalize(torch.from_numpy(rng.normal(size=(2, n, width))), dim=-1)
    return Directions(vectors[0], vectors[1])


def make_model(**changes: bool | float) -> tuple[Transformer, TemplateTask]:
    task = TemplateTask(name="copy", alphabet=12, test_alphabet=10)
    config = ModelConfig(
        len(task.vocabulary), 2, n_layers=2, n_heads=3, d_model=WIDTH, d_head=5, d_mlp=16, causal=False,
        positions="learned", tied=True, init=InitConfig("fan_in", embedding_std=0.3), **changes,  # type: ignore[arg-type]
    )  # fmt: skip
    return Transformer(config, torch.Generator().manual_seed(0)).double(), task


def test_an_update_inside_the_span_has_a_fraction_of_one() -> None:
    directions = draw_directions(9)
    weights = torch.linspace(-1, 2, 9).double()
    update = torch.einsum("x,xd,xe->de", weights, directions.read, directions.write)
    fraction, rank = span_fraction(update, directions)
    assert fraction == pytest.approx(1)
    assert rank == 9


def test_the_fraction_is_that_of_least_squares() -> None:
    directions = draw_directions(9)
    update = torch.from_numpy(np.random.default_rng(1).normal(size=(WIDTH, WIDTH)))
    columns = torch.einsum("xd,xe->xde", directions.read, directions.write).flatten(1).T
    fitted = columns @ torch.linalg.lstsq(columns, update.flatten()).solution
    assert span_fraction(update, directions)[0] == pytest.approx(float(fitted.square().sum() / update.square().sum()))


def test_a_symbol_that_is_named_twice_adds_no_dimension() -> None:
    directions = draw_directions(9)
    twice = Directions(torch.cat([directions.read] * 2), torch.cat([directions.write] * 2))
    update = torch.from_numpy(np.random.default_rng(1).normal(size=(WIDTH, WIDTH)))
    assert span_fraction(update, twice) == pytest.approx(span_fraction(update, directions))


def test_a_random_update_has_the_fraction_of_chance() -> None:
    rng, directions = np.random.default_rng(2), draw_directions(30)
    updates = torch.from_numpy(rng.normal(size=(400, WIDTH, WIDTH)))
    fractions = [span_fraction(update, directions)[0] for update in updates]
    expected = 30 / WIDTH**2
    assert np.mean(fractions) == pytest.approx(expected, abs=4 * np.std(fractions) / 20)
    readings = read_update(updates[0], directions, draw_directions(30, 1), rng)
    assert readings.chance_fraction == pytest.approx(expected)


def test_the_identity_acts_on_every_symbol_alike() -> None:
    read = draw_directions(20).read
    seen, unseen = Directions(read[:10], read[:10]), Directions(read[10:], read[10:])
    readings = read_update(3 * torch.eye(WIDTH).double(), seen, unseen, np.random.default_rng(0))
    assert readings.seen == readings.unseen == pytest.approx(WIDTH**-0.5)
    assert readings.random == pytest.approx(WIDTH**-0.5)
    assert readings.ratio == pytest.approx(1)
    assert readings.identity_fraction == pytest.approx(1)
    expected = (read[10:] * read[10:].roll(1, 0)).sum(1).mean() / WIDTH**0.5
    assert readings.mismatched == pytest.approx(float(expected))


def test_an_update_of_training_symbols_hardly_acts_on_orthogonal_ones() -> None:
    axes = torch.eye(WIDTH).double()
    seen, unseen = Directions(axes[:8], axes[:8]), Directions(axes[8:], axes[8:])
    update = torch.diag(torch.tensor([1.0] * 8 + [0.0] * (WIDTH - 8)))
    readings = read_update(update, seen, unseen, np.random.default_rng(0))
    assert readings.seen_fraction == pytest.approx(1)
    assert readings.unseen == readings.unseen_fraction == 0
    assert readings.seen == pytest.approx(8**-0.5)


def test_nothing_is_read_of_an_update_of_zero_or_of_no_symbols() -> None:
    directions = draw_directions(4)
    with pytest.raises(BindscopeError, match="no direction"):
        read_update(torch.zeros(WIDTH, WIDTH), directions, directions, np.random.default_rng(0))
    with pytest.raises(BindscopeError, match="directions"):
        Directions(directions.read, directions.write[:2])


def test_directions_are_what_attention_reads_without_what_all_symbols_share() -> None:
    model, task = make_model()
    symbols = np.arange(task.alphabet)
    strings = np.stack([symbols, np.full(len(symbols), len(task.vocabulary) - 1)], 1)
    first, second = find_directions(model, strings)
    with torch.no_grad():
        stream = model.embed.weight[:12] + model.pos_embed[0]
        expected = model.layers[0].norm1(stream)
    assert torch.allclose(first.read, normalize(expected - expected.mean(0), dim=1))
    assert torch.allclose(first.write, second.write)
    assert torch.allclose(second.read.norm(dim=1), torch.ones(12).double())


@pytest.mark.parametrize("changes", [{}, {"identity_vo": True, "identity_gain": 7.0}, {"n_kv_heads": 1}])
def test_a_first_order_step_is_what_a_small_step_does(changes: dict[str, float]) -> None:
    model, task = make_model(**changes)
    batch_loss(model, task.training_set()).backward()
    after, size = deepcopy(model), 1e-5
    with torch.no_grad():
        for new, old in zip(after.parameters(), model.parameters()):
            new -= size * old.grad
    for layer, block in enumerate(model.layers):
        gradients = {
            name: weight.grad for name, weight in block.attention.named_parameters() if weight.grad is not None
        }
        step = step_of_product(block.attention, gradients)
        moved = (product_of(after.layers[layer].attention) - product_of(block.attention)) / size
        assert torch.allclose(step, moved, rtol=1e-3, atol=1e-4 * float(step.abs().max()))
        assert float(step.abs().max()) > 1e-4


def test_the_first_step_is_not_predicted_for_heads_that_share_values() -> None:
    model, _ = make_model(n_kv_heads=1)
    with pytest.raises(BindscopeError, match="these share them"):
        predict_early(model.config, 12, np.random.default_rng(0))


def test_what_heads_write_is_their_product() -> None:
    model, _ = make_model(identity_vo=True, identity_gain=7.0)
    attention = model.layers[0].attention
    with torch.no_grad():
        attention.identity_b.copy_(torch.tensor([0.1, -0.2, 0.3]))
        x = torch.from_numpy(np.random.default_rng(0).normal(size=(1, 1, WIDTH)))
        view = model.view(torch.tensor([0]), None)
        written = attention(x, view)[0, 0]
        expected = x[0, 0] @ product_of(attention).sum(0)
    assert torch.allclose(written, expected)
