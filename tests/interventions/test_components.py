"""The parts of any transformer: they make it up, repair it exactly, and each is where its name says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.interventions.components import Part, Region
from bindscope.interventions.transplant import (
    change_at_random,
    find_parts,
    list_parts,
    mark_parts,
    read_transplanted,
    transplant,
)
from bindscope.measures.evaluation import read_answers
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask
from bindscope.theory.constructed import MECHANISM, construct_dereferencer

TASK = BindingTask(lines=6, max_depth=3, n_variables=8)
SHAPE = {"d_vocab": 40, "n_positions": 27, "n_layers": 3, "n_heads": 2, "d_model": 12, "d_head": 4, "d_mlp": 8}
SHAPES: dict[str, dict] = {
    "rope": {},
    "learned positions": {"positions": "learned", "bias": False},
    "fixed positions": {"positions": "normal", "norm": "rms"},
    "one MLP, no norm": {"mlp_layers": (1,), "norm": "none"},
    "tied": {"tied": True},
    "gated, shared keys": {"gated": True, "n_heads": 4, "n_kv_heads": 2, "activation": "silu"},
    "identity scaling": {"identity_qk": True, "identity_vo": True},
    "parallel": {"parallel": True, "n_layers": 1},
}


def make_model(seed: int, **settings) -> Transformer:
    model = Transformer(ModelConfig(**(SHAPE | settings)), torch.Generator().manual_seed(seed)).eval()
    with torch.no_grad():
        for value in model.state_dict().values():  # LayerNorms and identity scalings start the same in every model
            value.add_(torch.randn(value.shape, generator=torch.Generator().manual_seed(seed + 100)))
    return model


def finest(config: ModelConfig) -> list[Part]:
    """Groups of tokens, positions, each kind of each layer, the last norm and the unembedding: the finest without heads."""
    known = list_parts(config, TASK.token_groups)
    kinds = [f"L{layer}.{kind}" for layer in range(config.n_layers) for kind in ("QK", "OV", "MLP", "norms")]
    names = [*TASK.token_groups, "positions", *kinds, "last norm", "unembedding"]
    return [known[name] for name in names if name in known]


def count_marks(model: Transformer, parts: list[Part]) -> dict[str, torch.Tensor]:
    """How many of these parts each weight belongs to."""
    counts = {name: torch.zeros(value.shape) for name, value in model.state_dict().items()}
    for part in parts:
        for name, mark in mark_parts(model, [part]).items():
            counts[name] += mark
    return counts


@pytest.mark.parametrize("name", SHAPES)
def test_parts_hold_every_weight_once(name):
    model = make_model(0, **SHAPES[name])
    assert all((count == 1).all() for count in count_marks(model, finest(model.config)).values())


@pytest.mark.parametrize("name", SHAPES)
def test_everything_is_the_donor_nothing_the_receiver_and_all_parts_together_the_donor(name):
    receiver, donor = make_model(0, **SHAPES[name]), make_model(1, **SHAPES[name])
    parts = finest(receiver.config)

    def gives(given: list, expected: Transformer) -> bool:
        mixed = transplant(receiver, donor, given).state_dict()
        return all(torch.equal(mixed[tensor], value) for tensor, value in expected.state_dict().items())

    assert gives(["everything"], donor)
    assert gives(["nothing"], receiver)
    assert gives(parts, donor)
    for missing in parts:
        assert not gives([part for part in parts if part is not missing], donor), missing.name


@pytest.mark.parametrize("name", [name for name in SHAPES if name != "gated, shared keys"])
def test_heads_make_up_a_layers_attention_but_for_the_bias_of_its_output(name):
    model = make_model(0, **SHAPES[name])
    known = list_parts(model.config, {})
    heads = [known[f"L0.H{head}.{kind}"] for head in range(model.config.n_heads) for kind in ("QK", "OV")]
    bias = [Part("bias", "", (Region("blocks.0.attention.out.bias"),))] if model.config.bias else []
    joined, whole = count_marks(model, [*heads, *bias]), count_marks(model, [known["L0.QK"], known["L0.OV"]])
    assert all(torch.equal(joined[tensor], whole[tensor]) for tensor in whole)


def test_heads_that_share_keys_and_values_bring_those_of_their_group():
    settings = SHAPES["gated, shared keys"]
    receiver, donor = make_model(0, **settings), make_model(1, **settings)
    mixed = transplant(receiver, donor, ["L1.H2"]).layers[1].attention
    for matrix, taken in (("W_Q", {2}), ("W_K", {2, 3}), ("W_V", {2, 3}), ("W_O", {2})):
        for head in range(4):
            source = donor if head in taken else receiver
            expected = getattr(source.layers[1].attention, matrix)[head]
            assert torch.equal(getattr(mixed, matrix)[head], expected), (matrix, head)


def test_a_range_of_layers_is_its_layers_and_a_kind_is_that_kind_in_all_of_them():
    config = make_model(0).config

    def regions(*names: str) -> set[Region]:
        return {region for part in find_parts(config, names) for region in part.regions}

    assert regions("L1-2.QK") == regions("L1.QK", "L2.QK")
    assert regions("L0-2") == regions("L0", "L1", "L2")
    assert regions("OV") == regions("L0.OV", "L1.OV", "L2.OV")
    assert regions("norms") == regions("L0.norms", "L1.norms", "L2.norms", "last norm")
    assert [part.name for part in find_parts(config, ["l1.h0.qk", " l1-2.mlp ", "L0.Norms", "qk"])] == [
        "L1.H0.QK", "L1-2.MLP", "L0.norms", "QK",
    ]  # fmt: skip
    assert all(part.meaning for part in list_parts(config, TASK.token_groups).values())


def test_groups_of_tokens_are_the_tasks_own_and_each_token_is_in_one():
    symbols = TASK.vocabulary.symbols
    assert "".join(symbols[token] for token in TASK.token_groups["letters"]) == "abcdefghijklmnopqrstuvwxyz"
    assert sorted(token for group in TASK.token_groups.values() for token in group) == list(range(len(symbols)))
    receiver, donor = make_model(0), make_model(1)
    (digits,) = find_parts(receiver.config, ["digits"], TASK.token_groups)
    mixed = transplant(receiver, donor, [digits]).W_E
    assert torch.equal(mixed[:10], donor.W_E[:10])
    assert torch.equal(mixed[10:], receiver.W_E[10:])


@pytest.fixture(scope="module")
def constructed() -> Transformer:
    return construct_dereferencer(TASK.lines, TASK.max_depth)


@pytest.mark.parametrize("kind", ["QK", "OV"])
def test_what_a_damaged_head_has_lost_is_repaired_by_its_own_part_and_by_no_other(constructed, kind):
    batch = TASK.sample_evaluation(np.random.default_rng(0), 60)["test"]
    expected = read_answers(constructed, batch)
    for layer in range(constructed.config.n_layers):
        damaged = Transformer(constructed.config).eval()
        damaged.load_state_dict(constructed.state_dict())
        marks = mark_parts(damaged, [f"L{layer}.H{MECHANISM}.{kind}"])
        with torch.no_grad():
            for name, mark in marks.items():
                damaged.state_dict()[name][mark] = 0
        assert not np.array_equal(read_answers(damaged, batch), expected), layer
        for part in (f"L{layer}.H{MECHANISM}.{kind}", f"L{layer}.{kind}", kind, f"L{layer}"):
            np.testing.assert_array_equal(read_answers(transplant(damaged, constructed, [part]), batch), expected)
        other = "OV" if kind == "QK" else "QK"
        unrepaired = transplant(damaged, constructed, [other, "embeddings", "positions", "unembedding"])
        np.testing.assert_array_equal(read_answers(unrepaired, batch), read_answers(damaged, batch))
        if kind == "QK":  # where only scores were damaged, where the donor looks is all that was lost
            patterned = read_transplanted(damaged, constructed, [f"L{layer}.pattern"], batch)
            assert (patterned.argmax(1) == batch.targets[:, 0]).all()


@pytest.mark.parametrize("part", ["L1.H1.QK", "L0.OV", "L1-2", "letters", "embeddings + letters", "L0 + L0.H1.OV"])
def test_a_change_at_random_has_the_norm_of_the_transplant_and_its_weights(part):
    receiver, donor = make_model(0), make_model(1)
    parts = find_parts(receiver.config, part.split(" + "), TASK.token_groups)
    moved = transplant(receiver, donor, parts).state_dict()
    random = change_at_random(receiver, donor, parts, torch.Generator().manual_seed(2)).state_dict()
    for name, own in receiver.state_dict().items():
        asked, given = moved[name] - own, random[name] - own
        assert given.norm() == pytest.approx(float(asked.norm()), rel=1e-5)
        assert torch.equal(given == 0, asked == 0)


def test_a_part_that_a_shape_has_not_is_refused_with_the_nearest():
    config = make_model(0, mlp_layers=(1,), norm="none", tied=True).config
    for name in ("L3.QK", "L0.H2", "L0.MLP", "L2-1.QK", "L0.H1.MLP", "L0-3", "norms", "unembedding", "letters"):
        with pytest.raises(BindscopeError, match=f"there is no part '{name}'"):
            find_parts(config, [name])
