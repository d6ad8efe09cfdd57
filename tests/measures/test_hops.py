"""Heads by hop and depth: the constructed transformer's hops are found in its heads and layers, and ablation agrees."""

import numpy as np
import pytest

from bindscope.interventions.ablation import ablate_heads, ablate_together
from bindscope.measures.binding.hops import (
    ANYWHERE,
    ablate_hops,
    accuracy_drops,
    find_costliest,
    mean_layers,
    measure_hop_heads,
)
from bindscope.measures.binding.mechanism import join_heads, mark_columns
from bindscope.tasks.binding import BindingTask, distractor_positions, named_positions, sample_root_pairs
from bindscope.theory.constructed import construct_dereferencer

TASK = BindingTask(lines=8, max_depth=2)
HOPS = ["rhs 2", "query", "colon"]


@pytest.fixture(scope="module")
def model():
    return construct_dereferencer(8, 2)


@pytest.fixture(scope="module")
def pairs():
    return sample_root_pairs(TASK, np.random.default_rng(0), 24, range(1, 3), 3)


def test_each_hop_of_the_dereferencer_is_made_by_one_head_a_layer_later(model) -> None:
    deep = sample_root_pairs(TASK, np.random.default_rng(0), 12, range(2, 3), 3)
    found = measure_hop_heads(model, deep, HOPS, np.random.default_rng(0))
    for layer, hop in enumerate(HOPS, start=1):
        effect = found.effect.sel(position=hop).values
        assert effect[layer, 0] == pytest.approx(1)
        assert np.abs(effect).sum() == pytest.approx(1)
    assert found.hop_layer.values.tolist() == [1, 2, 3]
    assert found.later.values[1:].tolist() == found.later_low.values[1:].tolist() == [1, 1]
    assert np.isnan(found.later.values[0])


def test_a_hop_without_heads_has_no_layer_and_noise_does_not_count() -> None:
    effects = np.zeros((2, 3, 2))
    effects[0, 2, 1], effects[0, 0, 0] = 0.4, 0.05
    layers = mean_layers(effects)
    assert layers[0] == 2
    assert np.isnan(layers[1])


def test_heads_that_carry_the_value_together_carry_none_at_any_distractor(model, pairs, monkeypatch) -> None:
    mechanism = np.tile([1.0, 0.0], (model.config.n_layers, 1))  # [layer, head]: the second head of each is a decoy

    def joined():
        return join_heads(model, pairs, mechanism, np.random.default_rng(0), enough=2)  # never enough: all of them

    found, columns = joined(), distractor_positions(pairs)
    assert float(found.joint_success[-1]) == 1
    assert found.n_distractor.values.tolist() == [int((column >= 0).sum()) for column in columns.values()]
    known = found.n_distractor.values > 0
    assert known.sum() >= 3
    assert (found.distractor_success.values[known] == 0).all()
    on_chain = {"colon": named_positions(pairs)["colon"], "nowhere": np.full(len(pairs), -1)}
    monkeypatch.setattr("bindscope.measures.binding.mechanism.distractor_positions", lambda pairs: on_chain)
    found = joined()  # a position on the chain would be seen
    assert float(found.distractor_success.sel(distractors="colon")) == 1
    assert np.isnan(found.distractor_success.sel(distractors="nowhere"))


def test_ablating_the_mechanism_loses_answers_and_the_decoy_none(model, pairs) -> None:
    found = ablate_hops(model, pairs, HOPS, np.random.default_rng(0))
    assert (found.accuracy.sel(position=ANYWHERE, head=1) == 1).all()  # nothing reads the decoy
    assert (found.accuracy.sel(position=ANYWHERE, head=0, layer=0) < 0.8).all()
    assert float(found.accuracy.sel(position="rhs 2", head=0, layer=1, depth=2)) < 0.8
    assert float(found.accuracy.sel(position="rhs 2", head=0, layer=3, depth=2)) == 1
    assert np.isnan(found.accuracy.sel(position="rhs 2", depth=1)).all()  # no second line at depth 1
    assert float(found.more) == pytest.approx(float(found["drop"][1] - found["drop"][0]))


def test_the_costliest_head_of_each_hop_is_the_one_that_makes_it(model, pairs) -> None:
    drops = accuracy_drops(ablate_hops(model, pairs, HOPS, np.random.default_rng(0)))
    assert drops.dims == ("position", "layer", "head", "depth")
    most, names = find_costliest(drops)
    assert names.sel(depth=2, position=["rhs 2", "colon"]).values.tolist() == ["L1.H0", "L3.H0"]
    assert float(most.sel(position="query", depth=2)) == float(drops.sel(position="query", depth=2, layer=2, head=0))
    assert np.isnan(most.sel(position="rhs 2", depth=1))
    assert names.sel(position="rhs 2", depth=1) == ""
    untouched, nobody = find_costliest(drops.sel(head=[1]))
    assert float(untouched.max()) == 0
    assert set(nobody.values.flat) == {""}  # the decoy costs nothing


def test_heads_ablated_at_marked_positions_equal_running_the_model_again(model, pairs) -> None:
    marks = mark_columns(pairs, named_positions(pairs)["query"])
    found = ablate_heads(model, pairs.base, at_positions=marks)
    for layer in range(model.config.n_layers):
        again = ablate_together(model, pairs.base, [f"L{layer}.H0"], positions=marks)
        np.testing.assert_allclose(
            found.log_probability.sel(layer=layer, head=0), again.log_probability, rtol=1e-4, atol=1e-4
        )


def test_distractors_are_right_hand_sides_off_the_chain_and_after_the_root() -> None:
    task = BindingTask(lines=12, max_depth=3)
    pairs = sample_root_pairs(task, np.random.default_rng(0), 60, None, 3)
    root, found = pairs.chain_positions[:, 0], distractor_positions(pairs)
    assert len(found) == 4
    for column in found.values():
        has = column >= 0
        assert has.any()
        assert (column[has] > root[has]).all()
        assert (column[has] % 4 == 2).all()
        assert not (column[has, None] == pairs.chain_positions[has]).any()
    same, constant = found["distractor, same root"], found["distractor, constant"]
    tokens = pairs.base_tokens[np.arange(60), constant]
    assert (tokens[constant >= 0] < 10).all()
    changed = pairs.base_tokens[np.arange(60), same]
    assert (changed[same >= 0] >= 10).all()
