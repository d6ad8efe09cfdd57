from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.interventions import replacement
from bindscope.interventions.circuit import Circuit, Move, _Search, ablate_circuit, find_circuit, patch_circuit
from bindscope.interventions.contrast import Contrast, contrast_pairs
from bindscope.interventions.knockout import knock_out_edges, name_edge
from bindscope.interventions.patching import patch_sites
from bindscope.model.run import run
from bindscope.tasks.binding import BindingTask
from bindscope.tasks.binding.structure import named_positions
from bindscope.theory.constructed import construct_dereferencer, constructed_circuit
from interventions.causal_cases import identity_model, random_model, sample_pairs

TASK = BindingTask(lines=6, max_depth=4)


@pytest.mark.parametrize(
    ("depth", "direction"), [(1, "noising"), (2, "noising"), (3, "noising"), (4, "noising"), (2, "denoising")]
)
def test_the_constructed_circuit_is_recovered_exactly(depth: int, direction: str) -> None:
    """Right heads, right positions, nothing else: neither the decoy head nor a distractor's position."""
    model, pairs = construct_dereferencer(TASK.lines, TASK.max_depth), sample_pairs(12, depth, task=TASK)
    circuit = find_circuit(model, contrast_pairs(pairs, direction), named_positions(pairs))  # type: ignore[arg-type]
    found = {(move.layer, move.head, move.source, move.target) for move in circuit.moves}
    assert found == {dataclasses.astuple(step) for step in constructed_circuit(depth, TASK.max_depth)}
    assert len(found) == len(circuit.moves)


def test_pairs_that_lack_a_position_are_left_out_and_counted() -> None:
    """Half of the pairs have a chain of two lines, half of three: ``rhs 3`` is a position of the latter alone."""
    model, halves = construct_dereferencer(TASK.lines, TASK.max_depth), [sample_pairs(8, d, task=TASK) for d in (2, 3)]
    contrasts, named = [contrast_pairs(pairs) for pairs in halves], [named_positions(pairs) for pairs in halves]
    both = Contrast(
        *(torch.cat([getattr(c, name) for c in contrasts]) for name in ("base", "source")),
        *(torch.cat([getattr(c, name) for c in contrasts]) for name in ("base_answers", "source_answers")),
        at=contrasts[0].at,
    )
    positions = {name: np.concatenate([of.get(name, np.full(8, -1)) for of in named]) for name in named[1]}
    circuit = find_circuit(model, both, positions, least_success=0.9)
    moves = {(move.source, move.target): move for move in circuit.moves}
    alone = find_circuit(model, contrasts[1], named[1], least_success=0.9)
    deep = {str(move) for move in alone.moves if "rhs 3" in (move.source, move.target)}
    assert deep
    assert deep <= {str(move) for move in circuit.moves}
    assert {moves[ends].success for ends in (("rhs 2", "rhs 3"), ("rhs 3", "query"))} == {1}
    assert moves["rhs 3", "query"].n_pairs == moves["rhs 2", "rhs 3"].n_pairs == 8
    assert moves["query", "colon"].n_pairs == circuit.n_pairs == 16


def test_what_is_lost_without_an_edge_is_counted_over_the_pairs_that_have_it() -> None:
    """Towards the answer, pairs without a position neither add to the loss of its edges nor take from it."""
    model, halves = construct_dereferencer(TASK.lines, TASK.max_depth), [sample_pairs(8, d, task=TASK) for d in (2, 3)]
    contrasts, named = [contrast_pairs(pairs) for pairs in halves], [named_positions(pairs) for pairs in halves]
    both = Contrast(
        *(torch.cat([getattr(c, name) for c in contrasts]) for name in ("base", "source")),
        *(torch.cat([getattr(c, name) for c in contrasts]) for name in ("base_answers", "source_answers")),
        at=contrasts[0].at,
    )
    positions = {name: np.concatenate([of.get(name, np.full(8, -1)) for of in named]) for name in named[1]}
    (lost,) = _Search(model, both, positions, "success").needed("rhs 3", 0.1, 0.1)
    (alone,) = _Search(model, contrasts[1], named[1], "success").needed("rhs 3", 0.1, 0.1)
    assert lost == alone == (0, 0, "lhs 3", 1.0)


@pytest.mark.parametrize("n_parts", [0, 1])
def test_little_memory_finds_the_same_circuit(n_parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs made for each replacement again, or kept for all of them in parts of one pair."""
    model = construct_dereferencer(TASK.lines, TASK.max_depth)
    contrast = contrast_pairs(pairs := sample_pairs(6, 2, task=TASK))
    plenty = find_circuit(model, contrast, named_positions(pairs))
    monkeypatch.setattr(replacement, "MOST_PARTS", n_parts * len(contrast))
    monkeypatch.setattr(replacement, "pairs_at_once", lambda *_: 1)
    little = find_circuit(model, contrast, named_positions(pairs))
    assert plenty.moves
    assert [str(move) for move in little.moves] == [str(move) for move in plenty.moves]


def test_edges_that_hold_too_little_attention_are_not_tried() -> None:
    model, pairs = construct_dereferencer(TASK.lines, TASK.max_depth), sample_pairs(6, 1, task=TASK)
    circuit = find_circuit(model, contrast_pairs(pairs), named_positions(pairs), least_attention=1.1)
    assert [str(move) for move in circuit.moves] == ["L1.H0 rhs 1 → query", "L5.H0 query → colon"]
    assert all(math.isnan(move.loss) for move in circuit.moves)


def test_the_way_towards_the_answer_finds_the_same_circuit() -> None:
    model, pairs = construct_dereferencer(TASK.lines, TASK.max_depth), sample_pairs(10, 3, task=TASK)
    arguments = (model, contrast_pairs(pairs), named_positions(pairs))
    by_way, by_success = (find_circuit(*arguments, metric=metric) for metric in ("logit_difference", "success"))
    assert [str(move) for move in by_way.moves] == [str(move) for move in by_success.moves]


def test_a_circuit_of_the_full_size_is_recovered_too() -> None:
    model, pairs = construct_dereferencer(), sample_pairs(6, 4, task=BindingTask())
    circuit = find_circuit(model, contrast_pairs(pairs), named_positions(pairs))
    found = {(move.layer, move.head, move.source, move.target) for move in circuit.moves}
    assert found == {dataclasses.astuple(step) for step in constructed_circuit(4)}


def test_the_circuit_alone_is_enough_and_without_it_the_answer_is_lost() -> None:
    model, pairs = construct_dereferencer(TASK.lines, TASK.max_depth), sample_pairs(12, 3, task=TASK)
    contrast, positions = contrast_pairs(pairs), named_positions(pairs)
    circuit = find_circuit(model, contrast, positions)
    assert patch_circuit(model, contrast, positions, circuit).success.all()
    assert ablate_circuit(model, pairs.base, positions, circuit, kind="zero", keep=True).correct.all()
    assert ablate_circuit(model, pairs.base, positions, circuit, kind="zero").correct.mean() < 0.3
    less = dataclasses.replace(circuit, moves=tuple(move for move in circuit.moves if move.target != "query"))
    assert ablate_circuit(model, pairs.base, positions, less, kind="zero", keep=True).correct.mean() < 0.3


def test_a_frozen_circuit_meets_pairs_and_checkpoints_it_was_not_found_on() -> None:
    model, pairs = construct_dereferencer(TASK.lines, TASK.max_depth), sample_pairs(12, 2, task=TASK)
    circuit = find_circuit(model, contrast_pairs(pairs), named_positions(pairs))
    assert str(Circuit.from_json(circuit.to_json())) == str(circuit)  # as text: NaN differs from itself
    others = sample_pairs(15, 2, seed=9, task=TASK)
    assert patch_circuit(model, contrast_pairs(others), named_positions(others), circuit).success.all()
    untrained = construct_dereferencer(TASK.lines, TASK.max_depth)
    for block in untrained.layers[2:]:
        block.attention.out.weight.data.zero_()
    outcome = patch_circuit(untrained, contrast_pairs(others), named_positions(others), circuit)
    assert outcome.success.mean() < 0.5


@pytest.mark.parametrize("make", [random_model, identity_model])
def test_both_tests_equal_whole_runs(make) -> None:  # type: ignore[no-untyped-def]
    """Oracle for every head: patching of its output by ``patch_sites``, cuts of an edge by ``knock_out_edges``."""
    model, pairs = make(), sample_pairs(6, 2)
    contrast, positions = contrast_pairs(pairs), named_positions(pairs)
    search, layers = _Search(model, contrast, positions, "logit_difference"), range(3)
    outputs, new = ([search._terms(t, layer, "rhs 2").sum(1) for layer in layers] for t in (search.base, search.source))
    followed = search._follow("rhs 2", outputs, [after - before for before, after in zip(outputs, new)])
    cut = [search._terms(search.base, layer, "colon", positions["rhs 1"]).sum(1) for layer in layers]
    answers = search._replace("colon", cut).log_softmax(-1)[..., torch.arange(6), contrast.base_answers]
    for layer in layers:
        for head in range(2):
            patched = patch_sites(model, contrast, [f"L{layer}.H{head}"], positions=positions["rhs 2"])
            np.testing.assert_allclose(followed[layer, head], patched.logit_difference, atol=1e-6)
            without = knock_out_edges(model, pairs.base, [name_edge("colon>rhs 1", positions, layer, head)])
            np.testing.assert_allclose(answers[layer, head], without.log_probability, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("make", [random_model, identity_model])
def test_the_terms_of_a_heads_output_add_up_to_it(make) -> None:  # type: ignore[no-untyped-def]
    model, pairs = make(), sample_pairs(4)
    contrast, positions = contrast_pairs(pairs), named_positions(pairs)
    search = _Search(model, contrast, positions, "success")
    for layer in range(3):
        result = run(model, contrast.source, [f"L{layer}.result"])[f"L{layer}.result"][np.arange(4), positions["colon"]]
        np.testing.assert_allclose(search._terms(search.source, layer, "colon").sum(1), result, atol=1e-9)


def test_nothing_is_found_where_nothing_follows() -> None:
    """An untrained model does not bind, so no head's output makes its answer follow, and it has no answer to lose."""
    pairs = sample_pairs(10, 2)
    circuit = find_circuit(random_model(), contrast_pairs(pairs), named_positions(pairs))
    assert circuit.moves == ()
    with pytest.raises(BindscopeError, match="no moves"):
        patch_circuit(random_model(), contrast_pairs(pairs), named_positions(pairs), circuit)


def test_thresholds_and_positions_that_cannot_be_are_refused() -> None:
    pairs = sample_pairs(4, 1)
    contrast, positions = contrast_pairs(pairs), named_positions(pairs)
    with pytest.raises(BindscopeError, match="least_success"):
        find_circuit(random_model(), contrast, positions, least_success=0)
    deep = Circuit((Move(0, 0, "rhs 3", "rhs 4"),), 4, "success", 0.5, 0.5)
    with pytest.raises(BindscopeError, match="writes at 'rhs 4'"):
        patch_circuit(random_model(), contrast, positions, deep)
