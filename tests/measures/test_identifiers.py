"""Binding identifiers: a written model whose identifier is its position swaps where it should, an untrained one nowhere."""

import numpy as np
import pytest
import torch

from bindscope.measures.binding.identifiers import (
    EXCHANGED,
    FACTORISED,
    MEAN,
    ORDER,
    VECTOR,
    draw_identifier_programs,
    measure_identifiers,
)
from bindscope.measures.binding.line_means import LineMeans, order_bases
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask
from bindscope.theory.constructed import construct_dereferencer

TASK = BindingTask(lines=8, max_depth=2)


@pytest.fixture(scope="module")
def drawn():
    return draw_identifier_programs(TASK, np.random.default_rng(0), 20)


@pytest.fixture(scope="module")
def constructed(drawn):
    return measure_identifiers(construct_dereferencer(8, 2), drawn)


def untrained() -> Transformer:
    config = ModelConfig(d_vocab=40, n_positions=35, n_layers=2, n_heads=2, d_model=16, d_mlp=16)
    return Transformer(config, torch.Generator().manual_seed(0)).eval()


def test_before_names_are_read_the_dereferencers_position_is_a_binding_identifier(constructed) -> None:
    first = constructed.sel(layer=0)
    for part in ("name", "value"):
        cell = first.sel(part=part)
        assert float(cell.swapped.sel(intervention=FACTORISED)) == 1
        assert float(cell.kept.sel(intervention=EXCHANGED)) == 1
        assert float(cell.swapped.sel(intervention=MEAN)) == 1
        assert float(cell.swapped.sel(intervention=ORDER)) > 0.6
        assert float(cell.swapped.sel(intervention=VECTOR)) < 0.5
    assert float(first.kept.sel(part="line", intervention=MEAN)) == 1  # both ends of a binding move together


def test_once_a_value_has_its_name_no_identifier_matters(constructed) -> None:
    later = constructed.sel(layer=slice(1, None))
    assert (later.kept.sel(intervention=[EXCHANGED, MEAN], part=["name", "value"]) == 1).all()
    assert (later.kept.sel(intervention=FACTORISED, part="name") == 1).all()
    assert (
        float(constructed.swapped.sel(intervention=FACTORISED, part="value", layer=1)) < 0.5
    )  # a value without this name
    assert float(constructed.accuracy) == 1


def test_in_an_untrained_model_nothing_swaps_bindings(drawn) -> None:
    dataset = measure_identifiers(untrained(), drawn)
    assert float(dataset.accuracy) < 0.4
    assert (dataset.swapped.sel(part=["name", "value"]) < 0.5).all()


def test_the_line_explains_written_positions_and_nothing_of_tokens_alone(drawn) -> None:
    assert (LineMeans(construct_dereferencer(8, 2), drawn.others).explained("name") > 0.2).all()
    tokens_alone = LineMeans(untrained(), drawn.others)  # no position is added to its embeddings
    assert abs(float(tokens_alone.explained("name")[0])) < 0.02


def test_bases_of_the_order_are_orthonormal_and_span_the_differences_of_lines(drawn) -> None:
    means = LineMeans(construct_dereferencer(8, 2), drawn.others).at("name")
    basis = order_bases(means)[0, 0]  # [direction, d_model]
    torch.testing.assert_close(basis @ basis.T, torch.eye(len(basis)), atol=1e-4, rtol=0)
    gap = means[0, 5, 0] - means[0, 2, 0]
    torch.testing.assert_close(basis.T @ (basis @ gap), gap, atol=1e-4, rtol=0)
