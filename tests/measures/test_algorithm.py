"""Which algorithm a model follows a chain by: models written by hand are told apart, with their hops in their layers."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.joint import joint_answers
from bindscope.interventions.patching import patch_logits
from bindscope.measures.binding.algorithm.patches import (
    ALL,
    WAYS,
    draw_chain_pairs,
    hop_ways,
    mark_sets,
    measure_patches,
    path_of,
)
from bindscope.measures.binding.algorithm.reading import (
    Reading,
    name_algorithm,
    read_algorithm,
    summarise_algorithm,
)
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, sample_root_pairs
from bindscope.theory.constructed import construct_dereferencer, constructed_circuit
from measures.constructed_pointers import chase_pointers, meet_in_the_middle

TASK = BindingTask(lines=10, max_depth=3)
N = 12


@pytest.fixture(scope="module")
def pairs():
    return draw_chain_pairs(TASK, np.random.default_rng(0), N)


def read(model: Transformer, pairs) -> tuple[Reading, ...]:
    return read_algorithm(measure_patches(model, pairs))


def arrows(reading: Reading) -> list[tuple[str, str, str, int]]:
    assert all(arrow.first_layer == arrow.last_layer for arrow in reading.arrows)
    return [(arrow.what, arrow.source, arrow.targets[0], arrow.last_layer) for arrow in reading.arrows]


def test_the_dereferencer_moves_values_forward_in_the_layers_it_was_written_to(pairs) -> None:
    for reading in read(construct_dereferencer(10, 3), pairs):
        assert reading.algorithm == "value-forward"
        steps = [step for step in constructed_circuit(reading.depth, 3) if not step.source.startswith("lhs")]
        assert arrows(reading) == [("value", step.source, step.target, step.layer) for step in steps]


def test_a_pointer_chaser_goes_back_one_name_a_layer(pairs) -> None:
    for reading in read(chase_pointers(10, 3), pairs):
        assert reading.algorithm == "pointer-backward"
        assert reading.accuracy == 1
        names = path_of(reading.depth)[1:-1][::-1]  # query, the last right-hand side, …
        hops = [("pointer", name, "colon", layer) for layer, name in enumerate(names)]
        assert arrows(reading) == [*hops, ("value", "rhs 1", "colon", reading.depth)]


def test_a_model_that_meets_in_the_middle_moves_values_forward_and_one_pointer_back(pairs) -> None:
    readings = read(meet_in_the_middle(10, 3), pairs)
    assert [reading.algorithm for reading in readings] == [
        "pointer-backward",  # with one line there is nothing to come forward
        "meeting in the middle",
        "meeting in the middle",
    ]
    assert arrows(readings[2]) == [
        ("pointer", "query", "colon", 0),
        ("value", "rhs 1", "rhs 2", 1),
        ("value", "rhs 2", "rhs 3", 2),
        ("value", "rhs 3", "colon", 3),
    ]
    assert summarise_algorithm(readings) == "pointer-backward at depth 1; meeting in the middle at depths 2 and 3"


def test_an_untrained_model_is_undecided_and_nothing_is_patched(pairs) -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(d_vocab=40, n_positions=43, n_layers=2, n_heads=2, d_model=16, d_mlp=16)).eval()
    dataset = measure_patches(model, pairs)
    readings = read_algorithm(dataset)
    assert {reading.algorithm for reading in readings} == {"undecided"}
    assert not any(r.arrows for r in readings)
    assert "not learned" in str(readings[0])
    assert not np.isfinite(dataset.value).any()


def test_everything_after_the_root_at_the_end_is_the_source_run(pairs) -> None:
    value = measure_patches(construct_dereferencer(10, 3), pairs).value
    assert (value.isel(layer=-1).sel(position=ALL) == 1).all()
    assert (value.isel(layer=0).sel(position=ALL) == 0).all()


@pytest.mark.parametrize("causal", [True, False])
def test_joint_patches_equal_running_the_model_again(causal: bool) -> None:
    torch.manual_seed(1)
    config = ModelConfig(d_vocab=40, n_positions=43, n_layers=3, n_heads=2, d_model=16, d_mlp=32, causal=causal)
    model = Transformer(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.5 * torch.randn_like(weight))  # so that answers differ
    some = sample_root_pairs(TASK, np.random.default_rng(0), 10, range(2, 3), 3)
    contrast, sets = contrast_pairs(some), mark_sets(some, 2)
    answers = joint_answers(model, contrast, sets)
    for name, marks in sets.items():
        for layer in range(3):
            again = patch_logits(model, contrast, [f"L{layer}.resid_pre"], positions=marks).patched.argmax(-1)
            np.testing.assert_array_equal(answers.sel(set=name, layer=layer), again)
    source = patch_logits(model, contrast, ["L2.resid_post"], positions=sets["colon"]).patched.argmax(-1)
    np.testing.assert_array_equal(answers.sel(set="colon", layer=3), source)


def test_joint_patches_refuse_what_is_not_a_mark() -> None:
    contrast = contrast_pairs(sample_root_pairs(TASK, np.random.default_rng(0), 4))
    with pytest.raises(BindscopeError, match="the marks of 'query'"):
        joint_answers(construct_dereferencer(10, 3), contrast, {"query": np.zeros(4)})
    with pytest.raises(BindscopeError, match="no set"):
        joint_answers(construct_dereferencer(10, 3), contrast, {})


def test_several_positions_that_only_work_together_are_told_apart_from_nothing() -> None:
    nothing = np.zeros((2, 3), bool)
    fetched = {"rhs 2": nothing, "rhs 3": nothing, "query": nothing, "colon": nothing, "later rhs": nothing.copy()}
    fetched["later rhs"][1, 0] = True  # one pair, together only
    fetched["rhs 2"] = np.array([[False, True, False], [False, False, False]])  # another, alone
    moved = {name: nothing for name in fetched}
    ways = hop_ways(moved, fetched, "rhs 2")
    assert [WAYS[row.argmax()] for row in ways.T] == ["jointly", "value", "none"]
    assert (ways.sum(0) == 1).all()


@pytest.mark.parametrize(
    ("fractions", "way"),
    [
        ((1.0, 0.0, 0.0, 0.0, 0.0), "value"),
        ((0.0, 0.9, 0.0, 0.1, 0.0), "pointer"),
        ((0.5, 0.5, 0.0, 0.0, 0.0), "either"),
        ((0.2, 0.2, 0.3, 0.3, 0.0), "redundant"),
        ((0.0, 0.0, 0.0, 1.0, 0.0), "redundant"),
        ((0.2, 0.3, 0.0, 0.0, 0.5), "unclear"),
        ((0.6, 0.0, 0.0, 0.0, 0.4), "unclear"),  # most, but its interval reaches below half
    ],
)
def test_a_hop_is_named_by_what_happens_in_most_pairs(
    pairs, fractions: tuple[float, ...], way: str, written: Callable[..., xr.Dataset]
) -> None:
    reading = read_algorithm(written(fractions))[0]
    assert reading.hops[0].way == way
    assert (reading.algorithm == "undecided") == (way == "unclear")


@pytest.fixture(scope="module")
def written(pairs) -> Callable[..., xr.Dataset]:
    measured = measure_patches(construct_dereferencer(10, 3), pairs)

    def write(fractions: tuple[float, ...], n: int = 24) -> xr.Dataset:
        dataset = measured.sel(depth=[1]).copy(deep=True)
        dataset.hop.loc[{"reference": "query"}] = [fractions]
        dataset.n_hop.loc[{"reference": "query"}] = n
        return dataset

    return write


@pytest.mark.parametrize(
    ("ways", "name"),
    [
        (["value", "value"], "value-forward"),
        (["pointer", "pointer"], "pointer-backward"),
        (["value", "pointer"], "meeting in the middle"),
        (["either", "pointer"], "meeting in the middle"),
        (["value", "redundant"], "redundant"),
        (["unclear", "value"], "undecided"),
    ],
)
def test_a_depth_is_named_by_its_hops(ways: list[str], name: str) -> None:
    assert name_algorithm(ways) == name


def test_depths_that_are_too_rare_are_left_out_and_said_to_be() -> None:
    drawn = draw_chain_pairs(BindingTask(lines=6, max_depth=4), np.random.default_rng(0), 8)
    assert drawn.depths == [1, 2]
    assert drawn.note == "chains deeper than 2: two so deep are too rare in one program"
    with pytest.raises(BindscopeError, match="too short"):
        draw_chain_pairs(BindingTask(lines=2, max_depth=2), np.random.default_rng(0), 8)
