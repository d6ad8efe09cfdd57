"""Heads at positions: each cell equals one run with that write, and what models written by hand move is found in their heads."""

import numpy as np
import pytest
import torch

from bindscope.interventions.ablation import ablate_together
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.patching import patch_logits
from bindscope.measures.binding.moves.patches import (
    EVERYWHERE,
    measure_moves,
    pointer_contrast,
    stream_moves,
    value_contrast,
)
from bindscope.measures.binding.moves.reading import Move, read_moves, tell_moves
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import (
    BindingTask,
    named_positions,
    references_of,
    sample_pointer_pairs,
    sample_root_pairs,
)
from bindscope.theory.constructed import construct_dereferencer, constructed_circuit
from interventions.causal_cases import random_model
from measures.constructed_pointers import chase_pointers, meet_in_the_middle

TASK = BindingTask(lines=10, max_depth=3)
DEPTH = 2


def drawn(n: int = 8):
    rng = np.random.default_rng(0)
    value = sample_root_pairs(TASK, rng, n, range(DEPTH, DEPTH + 1), 3)
    return value, [sample_pointer_pairs(TASK, rng, n, DEPTH, reference, 3) for reference in references_of(DEPTH)]


def moves_of(model: Transformer) -> list[Move]:
    value, pointers = drawn()
    return read_moves(measure_moves(model, [value_contrast(value), *map(pointer_contrast, pointers)]).mean("pair"))


def test_the_dereferencers_moves_are_those_that_were_written() -> None:
    found = moves_of(construct_dereferencer(10, 3))
    steps = [step for step in constructed_circuit(DEPTH, 3) if not step.source.startswith("lhs")]
    assert [(move.what, move.layer, move.source, move.target) for move in found] == [
        ("value", step.layer, step.source, step.target) for step in steps
    ]
    assert all(move.heads == ((0, pytest.approx(move.effect)),) for move in found)


def test_a_chaser_moves_names_to_the_colon_and_a_value_in_the_end() -> None:
    found = {(move.what, move.source, move.target) for move in moves_of(chase_pointers(10, 3))}
    assert ("query", "query", "colon") in found
    assert {what for what, *_ in found} >= {"value", "query"}
    assert all(target == "colon" for what, _, target in found)


def test_meeting_in_the_middle_is_seen_as_both() -> None:
    found = {(move.what, move.source, move.target) for move in moves_of(meet_in_the_middle(10, 3))}
    assert {("value", "rhs 1", "rhs 2"), ("value", "rhs 2", "colon"), ("query", "query", "colon")} <= found


def test_the_sentence_says_where_the_value_sits_layer_by_layer() -> None:
    value, _ = drawn()
    dataset = measure_moves(construct_dereferencer(10, 3), [value_contrast(value)]).mean("pair")
    assert tell_moves(dataset) == (
        "The value sits at rhs 1 entering L0 to L1, rhs 2 entering L2, query from L3 on and colon after L4."
    )


def margin(logits: torch.Tensor, targets: torch.Tensor) -> np.ndarray:
    rows, others = torch.arange(len(targets)), logits.clone()
    others[rows, targets] = -torch.inf
    return (logits[rows, targets] - others.amax(-1)).numpy()


@pytest.mark.parametrize("seed", [0, 1])
def test_every_cell_equals_one_run_with_that_write(seed: int) -> None:
    task = BindingTask(lines=5, max_depth=3)
    pairs = sample_root_pairs(task, np.random.default_rng(seed), 40, range(DEPTH, DEPTH + 1), 1)
    model, contrast, named = random_model(seed), contrast_pairs(pairs), named_positions(pairs)
    dataset = measure_moves(model, [value_contrast(pairs)])
    checked = 0
    for name, site in (("head", "L1.H1"), ("together", "L1.attn_out"), ("held", "L1.resid_pre")):
        for position in dataset.position.values:
            mine = dataset[name].sel(what="value", layer=1, position=position)
            mine = mine.sel(index=1).values if name == "head" else mine.values
            logits = patch_logits(model, contrast, [site], positions=named[str(position)])
            before, after = (margin(each, contrast.source_answers) for each in (logits.base, logits.patched))
            expected = np.where(before < 0, (after - before) / (-2 * before), np.nan)
            known = np.isfinite(mine)
            np.testing.assert_allclose(mine[known], expected[known], atol=1e-4, rtol=1e-4)
            checked += known.sum()
    assert checked > 100


def test_an_ablation_is_what_the_head_s_mean_there_leaves_of_the_margin() -> None:
    task = BindingTask(lines=5, max_depth=3)
    pairs = sample_root_pairs(task, np.random.default_rng(2), 64, range(DEPTH, DEPTH + 1), 1)
    model = random_model(2)
    dataset = measure_moves(model, [value_contrast(pairs)])
    for ablated_at in (EVERYWHERE, "colon", "rhs 1"):
        marks = {} if ablated_at == EVERYWHERE else {"positions": named_positions(pairs)[ablated_at]}
        alone = ablate_together(model, pairs.base, ["L2.H0"], "mean", **marks)
        whole = alone.base_margin.values
        mine = dataset.lost.sel(layer=2, index=0, ablated_at=ablated_at).values
        known = np.isfinite(mine)
        assert (known == (whole > 0)).all()
        np.testing.assert_allclose(mine[known], ((whole - alone.margin.values) / whole)[known], atol=1e-4, rtol=1e-3)


def test_what_grows_ends_whole_and_is_missing_before() -> None:
    value, pointers = drawn(4)
    moved = [value_contrast(value), pointer_contrast(pointers[0])]
    parts = [part.copy(deep=True) for part in stream_moves(construct_dereferencer(10, 3), moved)]
    assert len(parts) == 3
    assert parts[0]["head"].isel(what=1).isnull().all()
    assert parts[1].lost.isnull().all()
    assert not parts[2].lost.isnull().any()
