"""The nine terms of a score sum to it; matrices over tokens against loops."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.by_variable import OPERANDS, ask_one_variable
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.score_terms import describe_scores, score_terms, token_matrices
from bindscope.model.config import InitConfig
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.studies.assign_add.presets import SHAPE
from bindscope.studies.framework.preset import model_for
from bindscope.tasks.assign_add import AssignAddTask
from measures.constructed_adder import TASK as ADDER_TASK
from measures.constructed_adder import construct_adder

TASK = AssignAddTask(7, 5)


@pytest.fixture(scope="module")
def model() -> Transformer:
    shape = {**SHAPE, "init": InitConfig(scheme="gpt2", std=0.4)}  # large enough for attention that is not even
    config = model_for(TASK, d_model=12, d_head=12, d_mlp=12, **shape)
    return Transformer(config, torch.Generator().manual_seed(3)).eval()


@pytest.mark.parametrize("operand", OPERANDS)
def test_the_terms_sum_to_the_score_that_the_model_gives(model: Transformer, operand: str) -> None:
    """The model's own pattern of = in layer 2 is exp(score) up to one factor a sequence."""
    batch = TASK.sample_split(np.random.default_rng(0), 40, "2tr")
    with torch.no_grad():
        pattern = (
            run(model, torch.from_numpy(batch.tokens), read=["L1.pattern"])["L1.pattern"][:, 0, 15].double().numpy()
        )
    forms = SumForms.of(model, TASK)
    sums = {each: score_terms(forms, TASK, batch.tokens, each).sum((1, 2)) for each in OPERANDS}
    at = TASK.sequences.value_positions(batch.tokens)  # [sequence, operand]
    rows = np.arange(len(batch))
    ratio = np.log(pattern[rows, at[:, 1]]) - np.log(pattern[rows, at[:, 0]])
    np.testing.assert_allclose(sums["second"] - sums["first"], ratio, atol=1e-4)
    assert np.abs(ratio).max() > 0.5


def test_each_term_is_the_product_of_its_parts(model: Transformer) -> None:
    forms = SumForms.of(model, TASK)
    row = TASK.parse("_ c=1 d=4 | d+2")[None]
    terms = score_terms(forms, TASK, row, "first")[0]
    table = np.concatenate([forms.numbers, [forms.operator, forms.equals, forms.pad], forms.variables])
    assert terms[0, 0] == pytest.approx(forms.equals @ forms.qk2 @ forms.numbers[4])
    assert terms[1, 1] == pytest.approx(forms.positions[15] @ forms.qk2 @ forms.positions[4])
    assert terms[0, 1] == pytest.approx(forms.equals @ forms.qk2 @ forms.positions[4])
    x = table[row[0]] + forms.positions

    def brought(position: int) -> np.ndarray:
        """What layer 1 brings to a position, key by key."""
        weights = np.exp([x[position] @ forms.qk1 @ x[key] for key in range(position + 1)])
        return sum(weight / weights.sum() * x[key] @ forms.ov1 for key, weight in enumerate(weights))

    assert terms[2, 2] == pytest.approx(brought(15) @ forms.qk2 @ brought(4))
    assert terms[2, 0] == pytest.approx(brought(15) @ forms.qk2 @ forms.numbers[4])


def test_in_the_written_adder_the_score_of_a_variable_is_the_match_of_what_layer_one_brought() -> None:
    task, rng = ADDER_TASK, np.random.default_rng(0)
    forms = SumForms.of(construct_adder(), task)
    rows = ask_one_variable(task, rng, 20, 3, "first").tokens
    terms = score_terms(forms, task, rows, "first").mean(0)
    expected = np.zeros((3, 3))
    expected[0, 0] = expected[2, 2] = 40  # = attends to numbers, and to what holds the variable that it holds
    np.testing.assert_allclose(terms, expected, atol=1e-3)


def test_means_are_over_the_sums_of_each_variable(model: Transformer) -> None:
    forms, rng = SumForms.of(model, TASK), np.random.default_rng(0)
    names = TASK.sequences.variables
    sums = {
        (name, operand): ask_one_variable(TASK, rng, 6, index, operand).tokens
        for index, name in enumerate(names)
        for operand in OPERANDS
    }
    dataset = describe_scores(forms, TASK, sums)
    cell = dataset.term.sel(variable="b", operand="second")
    np.testing.assert_allclose(cell, score_terms(forms, TASK, sums["b", "second"], "second").mean(0))
    by_hand = [forms.positions[15] @ forms.qk1 @ variable for variable in forms.variables]
    np.testing.assert_allclose(dataset.last_position_to_variable, by_hand)


def test_matrices_over_tokens_are_those_of_the_weights(model: Transformer) -> None:
    forms = SumForms.of(model, TASK)
    dataset = token_matrices(forms, TASK)
    b, three = forms.variables[1], forms.numbers[3]
    assert float(dataset.token_ov.sel(layer=2, token="3", becomes="b")) == pytest.approx(three @ forms.ov2 @ b)
    assert float(dataset.token_ov.sel(layer=1, token="b", becomes="3")) == pytest.approx(b @ forms.ov1 @ three)
    copy = b @ forms.ov1
    assert float(dataset.token_qk2.sel(query="OV1 b", key="OV1 b")) == pytest.approx(copy @ forms.qk2 @ copy)
    assert float(dataset.token_qk2.sel(query="=", key="OV1 b")) == pytest.approx(forms.equals @ forms.qk2 @ copy)


def test_an_unknown_operand_is_refused(model: Transformer) -> None:
    with pytest.raises(BindscopeError, match="first or second"):
        score_terms(SumForms.of(model, TASK), TASK, TASK.parse("b=1 | b+2")[None], "third")


def test_without_position_embeddings_their_terms_vanish(model: Transformer) -> None:
    forms = SumForms.of(model, TASK)
    bare = dataclasses.replace(forms, positions=np.zeros_like(forms.positions))
    terms = score_terms(bare, TASK, TASK.parse("b=1 | b+2")[None], "first")[0]
    np.testing.assert_array_equal(terms[1], 0)
    np.testing.assert_array_equal(terms[:, 1], 0)
