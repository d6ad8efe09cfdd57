"""Transplants between two models of modular addition: identities that hold whatever the weights are, and a run by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.interventions.transplant import (
    change_at_random,
    find_parts,
    list_parts,
    read_transplanted,
    transplant,
)
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.evaluation import read_answers
from bindscope.model.config import InitConfig
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.preset import model_for
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.task import Batch

TASK = AssignAddTask(modulus=11, n_variables=5)
VARIABLES = [f"variable {name}" for name in "abcde"]
POSITIONS = [f"position {index}" for index in range(16)]


def make_model(seed: int, **settings) -> Transformer:
    shape = dict(n_layers=2, n_heads=1, d_model=12, d_head=8, d_mlp=20, activation="relu", positions="learned",
                 norm="none", bias=False, mlp_layers=(1,), init=InitConfig(scheme="gpt2", std=0.4))  # fmt: skip
    return Transformer(model_for(TASK, **(shape | settings)), torch.Generator().manual_seed(seed)).eval()


@pytest.fixture(scope="module")
def receiver() -> Transformer:
    return make_model(0)


@pytest.fixture(scope="module")
def donor() -> Transformer:
    return make_model(1)


@pytest.fixture(scope="module")
def batch() -> Batch:
    return TASK.sample_batch(np.random.default_rng(0), 60)


def same_weights(one: Transformer, other: Transformer) -> bool:
    states = one.state_dict(), other.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def changed_tensors(one: Transformer, other: Transformer) -> set[str]:
    states = one.state_dict(), other.state_dict()
    return {name for name in states[0] if not torch.equal(states[0][name], states[1][name])}


def test_everything_is_the_donor_nothing_the_receiver_and_neither_is_touched(receiver, donor):
    before = {name: value.clone() for name, value in receiver.state_dict().items()}
    given = {name: value.clone() for name, value in donor.state_dict().items()}
    assert same_weights(transplant(receiver, donor, ["everything"]), donor)
    assert same_weights(transplant(receiver, donor, ["nothing"]), receiver)
    for name in list_parts(receiver.config):
        if not name.startswith("pattern"):
            transplant(receiver, donor, [name])
    assert all(torch.equal(before[name], value) for name, value in receiver.state_dict().items())
    assert all(torch.equal(given[name], value) for name, value in donor.state_dict().items())


@pytest.mark.parametrize(
    "parts",
    [
        ["routing", "computing"],
        ["embeddings", "positions", "QK1", "OV1", "QK2", "OV2", "MLP", "unembedding"],
        ["numbers", "operator", "equals", "pad", *VARIABLES, *POSITIONS, "computing", "QK1", "QK2·OV1"],
    ],
)
def test_parts_that_make_up_a_model_give_the_donor_and_without_the_last_they_do_not(receiver, donor, parts):
    assert same_weights(transplant(receiver, donor, parts), donor)
    for missing in parts:
        assert not same_weights(transplant(receiver, donor, [part for part in parts if part != missing]), donor)


def test_parts_of_a_model_with_grouped_heads_and_a_gated_mlp_make_up_the_model():
    receiver, donor = (make_model(seed, n_heads=4, n_kv_heads=2, gated=True) for seed in range(2))
    assert same_weights(transplant(receiver, donor, ["routing", "computing"]), donor)
    scores, values = (transplant(receiver, donor, [part]).layers[0].attention for part in ("QK1", "OV1"))
    ours, theirs = receiver.layers[0].attention, donor.layers[0].attention
    for name, taken in (("W_Q", scores), ("W_K", scores), ("W_V", values), ("W_O", values)):
        other = values if taken is scores else scores
        assert torch.equal(getattr(taken, name), getattr(theirs, name))
        assert torch.equal(getattr(other, name), getattr(ours, name))


def test_a_part_is_the_donors_and_everything_else_the_receivers(receiver, donor):
    of = {name: SumForms.of(model, TASK) for name, model in (("receiver", receiver), ("donor", donor))}

    def forms(*parts: str) -> SumForms:
        return SumForms.of(transplant(receiver, donor, parts), TASK)

    expected = {"QK1": ["qk1"], "OV1": ["ov1"], "QK2": ["qk2"], "OV2": ["ov2"], "QK2·OV1": ["ov1", "qk2"],
                "numbers": ["numbers"], "variables": ["variables"], "positions": ["positions"], "pad": ["pad"],
                "equals": ["equals"], "operator": ["operator"], "MLP": ["up", "down"],
                "unembedding": ["unembed"]}  # fmt: skip
    for part, names in expected.items():
        found = forms(part)
        for name in vars(found):
            source = of["donor" if name in names else "receiver"]
            np.testing.assert_array_equal(getattr(found, name), getattr(source, name), err_msg=f"{part}: {name}")
    b = forms("variable b").variables
    np.testing.assert_array_equal(b[1], of["donor"].variables[1])
    np.testing.assert_array_equal(b[[0, 2, 3, 4]], of["receiver"].variables[[0, 2, 3, 4]])
    fourteen = forms("position 14").positions
    np.testing.assert_array_equal(fourteen[14], of["donor"].positions[14])
    np.testing.assert_array_equal(np.delete(fourteen, 14, 0), np.delete(of["receiver"].positions, 14, 0))


@pytest.mark.parametrize("part", ["QK1", "routing", "variable c"])
def test_answers_with_weights_are_those_of_the_transplanted_model(receiver, donor, batch, part):
    expected = read_answers(transplant(receiver, donor, [part]), batch)
    np.testing.assert_allclose(read_transplanted(receiver, donor, [part], batch), expected, atol=1e-4)


@pytest.mark.parametrize(("part", "pattern"), [("QK1", "pattern 1"), ("QK2", "pattern 2"), ("QK2", "pattern 2 of =")])
def test_where_only_the_scores_differ_the_pattern_is_the_whole_difference(receiver, donor, batch, part, pattern):
    other = transplant(receiver, donor, [part])
    np.testing.assert_allclose(
        read_transplanted(receiver, other, [pattern], batch), read_answers(other, batch), atol=1e-4
    )
    unchanged = "pattern 1" if part == "QK2" else "MLP"
    np.testing.assert_allclose(
        read_transplanted(receiver, other, [unchanged], batch), read_answers(receiver, batch), atol=1e-4
    )


@pytest.mark.parametrize(
    ("part", "rows"),
    [("pattern 1", range(16)), ("pattern 1 of =", [15]), ("pattern 1 of the assignments", range(12))],
)
def test_a_pattern_is_written_into_the_run_as_by_hand(receiver, donor, batch, part, rows):
    own, other = SumForms.of(receiver, TASK), SumForms.of(donor, TASK)
    expected = [answer_by_hand(own, other, tokens, list(rows)) for tokens in batch.tokens]
    np.testing.assert_allclose(read_transplanted(receiver, donor, [part], batch), expected, atol=1e-4)


def answer_by_hand(own: SumForms, other: SumForms, tokens: np.ndarray, rows: list[int]) -> np.ndarray:
    """One sequence through the receiver, its layer-1 pattern replaced in ``rows`` by the donor's."""
    x, pattern = embed(own, tokens), attend(embed(own, tokens), own.qk1)
    pattern[rows] = attend(embed(other, tokens), other.qk1)[rows]
    x = x + pattern @ x @ own.ov1
    x = x + attend(x, own.qk2) @ x @ own.ov2
    return ((x + own.mlp(x)) @ own.unembed)[-1]


def embed(forms: SumForms, tokens: np.ndarray) -> np.ndarray:
    table = np.concatenate([forms.numbers, [forms.operator, forms.equals, forms.pad], forms.variables])
    return table[tokens] + forms.positions


def attend(x: np.ndarray, qk: np.ndarray) -> np.ndarray:
    scores = np.exp(x @ qk @ x.T) * np.tri(len(x))
    return scores / scores.sum(1, keepdims=True)


def test_a_change_at_random_is_as_large_as_the_transplant_and_stays_in_its_part(receiver, donor):
    for part in ("QK1", "variables", "MLP", "everything"):
        moved = transplant(receiver, donor, [part])
        random = change_at_random(receiver, donor, [part], torch.Generator().manual_seed(3))
        assert changed_tensors(random, receiver) == changed_tensors(moved, receiver)
        for name in changed_tensors(moved, receiver):
            own = receiver.state_dict()[name]
            asked, given = (model.state_dict()[name] - own for model in (moved, random))
            assert given.norm() == pytest.approx(float(asked.norm()), rel=1e-5)
            assert torch.equal(given == 0, asked == 0)
            assert abs(torch.cosine_similarity(given.flatten(), asked.flatten(), dim=0)) < 0.5
        again = change_at_random(receiver, donor, [part], torch.Generator().manual_seed(3))
        assert same_weights(random, again)


def test_names_are_found_however_they_are_typed(receiver):
    typed = ["qk1", "QK2*OV1", "qk2.ov1", " variable  b ", "mlp"]
    assert [part.name for part in find_parts(receiver.config, typed)] == [
        "QK1",
        "QK2·OV1",
        "QK2·OV1",
        "variable b",
        "MLP",
    ]
    assert all(part.meaning for part in list_parts(receiver.config).values())


def test_what_cannot_be_transplanted_is_refused_in_a_sentence(receiver, donor, batch):
    with pytest.raises(BindscopeError, match=r"no part 'QK3'.*QK"):
        transplant(receiver, donor, ["QK3"])
    with pytest.raises(BindscopeError, match="no part 'variable f'"):
        transplant(receiver, donor, ["variable f"])
    with pytest.raises(BindscopeError, match="where a model attends"):
        transplant(receiver, donor, ["pattern 1"])
    with pytest.raises(BindscopeError, match="two models of one shape"):
        read_transplanted(receiver, make_model(0, d_mlp=24), ["QK1"], batch)
