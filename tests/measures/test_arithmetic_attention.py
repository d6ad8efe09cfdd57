"""Looks of a model written by hand, and of random ones against a loop over their maps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.measures.arithmetic.attention import look_at, measure_looks
from bindscope.measures.evaluation import read_answers
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import SPLIT_NAMES
from measures.constructed_adder import TASK, adder_config, construct_adder


@pytest.fixture(scope="module")
def adder() -> Transformer:
    return construct_adder()


@pytest.mark.parametrize("split", SPLIT_NAMES)
def test_the_hand_written_model_answers_every_split_and_looks_where_it_should(adder, split):
    batch = TASK.sample_split(np.random.default_rng(0), 60, split)
    assert (read_answers(adder, batch).argmax(1) == batch.targets[:, 0]).all()
    looks = measure_looks(adder, TASK, batch.tokens)
    for look in ("operands", "numbers", "values"):
        assert looks.kept[look].min() == 1, look
        assert looks.mass[look].min() > 0.99, look


def test_looks_of_a_random_model_are_those_of_a_loop_over_its_maps():
    model = Transformer(adder_config(), torch.Generator().manual_seed(1)).eval()
    tokens = TASK.sample_batch(np.random.default_rng(2), 40).tokens
    looks = measure_looks(model, TASK, tokens)
    for row, sequence in enumerate(tokens):
        with torch.no_grad():
            trace = run(model, torch.from_numpy(sequence[None]), ["L0.pattern", "L1.pattern"])
        first, last = (trace[f"L{layer}.pattern"][0, 0].numpy() for layer in (0, 1))
        located = TASK.locate(sequence)
        values = [operand.value_position for operand in located.operands]
        for name, weights, columns in (("operands", first[15], [13, 14]), ("values", last[15], values)):
            assert looks.kept[name][row] == (set(np.argsort(weights)[-2:].tolist()) == set(columns))
            assert looks.mass[name][row] == pytest.approx(weights[columns].sum(), abs=1e-6)
        back = [first[a.value_position].argmax() == a.position for a in located.assignments]
        assert looks.kept["numbers"][row] == pytest.approx(np.mean(back))
        given = [first[a.value_position, a.position] for a in located.assignments]
        assert looks.mass["numbers"][row] == pytest.approx(np.mean(given), abs=1e-6)
    assert 0 < looks.kept["numbers"].mean() < 1  # so that the loop had both cases to tell apart


def test_the_order_of_the_two_columns_does_not_matter():
    weights = np.array([[0.1, 0.5, 0.4], [0.6, 0.3, 0.1]])
    kept, mass = look_at(weights, np.array([[2, 1], [2, 0]]))
    assert kept.tolist() == [1, 0]
    np.testing.assert_allclose(mass, [0.9, 0.7])
