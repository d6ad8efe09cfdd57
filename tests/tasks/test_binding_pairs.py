"""Counterfactual pairs differ in one constant, and the conflicting ones tell rules and chain apart."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import (
    BindingTask,
    CounterfactualPairs,
    Program,
    chain_positions,
    sample_conflict_pairs,
    sample_name_pairs,
    sample_root_pairs,
)

TASKS = [BindingTask(), BindingTask(lines=8, held_out=0.2), BindingTask(lines=12, n_variables=8, reassign=0.3)]


def both_programs(pairs: CounterfactualPairs) -> list[tuple[Program, Program]]:
    rows = zip(pairs.base_tokens, pairs.counterfactual_tokens)
    return [(Program.from_tokens(base), Program.from_tokens(counterfactual)) for base, counterfactual in rows]


@pytest.mark.parametrize("sample", [sample_root_pairs, sample_conflict_pairs])
@pytest.mark.parametrize("task", TASKS)
def test_a_pair_differs_only_in_the_root_constant(task: BindingTask, sample: type) -> None:
    pairs = sample(task, np.random.default_rng(0), 200)
    for row, (base, counterfactual) in enumerate(both_programs(pairs)):
        assert counterfactual == base.with_root_constant(int(pairs.counterfactual_answers[row]))
        assert base.answer == pairs.base_answers[row] != pairs.counterfactual_answers[row] == counterfactual.answer
        assert (base.depth, base.root_line) == (pairs.labels["depth"][row, 0], pairs.labels["root_line"][row, 0])
        positions = [position for position in pairs.chain_positions[row] if position >= 0]
        assert (*positions, pairs.query_position, pairs.colon_position) == chain_positions(base)
        assert np.flatnonzero(pairs.base_tokens[row] != pairs.counterfactual_tokens[row]) == [positions[0]]


@pytest.mark.parametrize("sample", [sample_root_pairs, sample_conflict_pairs])
def test_no_side_of_a_pair_needs_a_held_out_combination(sample: type) -> None:
    task = BindingTask(lines=8, held_out=0.3)
    for programs in both_programs(sample(task, np.random.default_rng(1), 200)):
        for program in programs:
            for variable in (program.query, program.assignments[program.root_line - 1].variable):
                assert not task.held_out_combinations[ord(variable) - ord("a"), program.answer]


def test_conflict_pairs_give_four_answers_to_four_explanations() -> None:
    pairs = sample_conflict_pairs(BindingTask(), np.random.default_rng(2), 300)
    for side in (pairs.base, pairs.counterfactual):
        np.testing.assert_array_equal(side.labels["rule_line_1"], pairs.labels["rule_line_1"])
        np.testing.assert_array_equal(side.labels["rule_positional"], pairs.labels["rule_positional"])
    explained = [
        pairs.labels["rule_line_1"][:, 0],
        pairs.labels["rule_positional"][:, 0],
        pairs.base_answers,
        pairs.counterfactual_answers,
    ]
    assert (np.diff(np.sort(np.stack(explained), axis=0), axis=0) > 0).all()
    assert (pairs.labels["root_line"] > 1).all()


def test_pairs_are_balanced_over_the_depths_asked_for() -> None:
    task, rng = BindingTask(), np.random.default_rng(3)
    everything = sample_root_pairs(task, rng, 2000).labels["depth"].ravel()
    np.testing.assert_allclose(np.bincount(everything, minlength=5)[1:] / 2000, 0.25, atol=0.04)
    assert set(sample_root_pairs(task, rng, 100, depths=range(3, 5)).labels["depth"].ravel()) == {3, 4}
    assert set(sample_conflict_pairs(task, rng, 100).labels["depth"].ravel()) == {2, 3, 4}
    assert sample_root_pairs(task, rng, 20, depths=range(2, 3)).chain_positions.shape == (20, 2)


def test_roots_on_the_first_lines_can_be_left_out() -> None:
    pairs = sample_root_pairs(BindingTask(), np.random.default_rng(4), 300, first_root_line=3)
    assert pairs.labels["root_line"].min() == 3


def test_pairs_of_another_length_than_the_tasks() -> None:
    pairs = sample_root_pairs(BindingTask(), np.random.default_rng(5), 10, n_lines=5)
    assert pairs.base_tokens.shape == (10, 23)
    assert (pairs.query_position, pairs.colon_position) == (21, 22)


def test_new_constants_are_drawn_uniformly() -> None:
    pairs = sample_root_pairs(BindingTask(), np.random.default_rng(6), 6000)
    shift = (pairs.counterfactual_answers - pairs.base_answers) % 10
    np.testing.assert_allclose(np.bincount(shift, minlength=10)[1:] / 6000, 1 / 9, atol=0.02)


def test_pairs_that_cannot_exist_are_refused() -> None:
    rng = np.random.default_rng(7)
    with pytest.raises(BindscopeError, match=r"depths 5 to 5 were asked for.*have depths 1 to 4"):
        sample_root_pairs(BindingTask(), rng, 1, depths=range(5, 6))
    with pytest.raises(BindscopeError, match=r"depths 1 to 3 were asked for.*have depths 2 to 4"):
        sample_conflict_pairs(BindingTask(), rng, 1, depths=range(1, 4))
    with pytest.raises(BindscopeError, match="needs 2 constants"):
        sample_root_pairs(BindingTask(n_constants=1), rng, 1)
    with pytest.raises(BindscopeError, match="need 4 constants"):
        sample_conflict_pairs(BindingTask(n_constants=3), rng, 1)
    with pytest.raises(BindscopeError, match="depths"):
        sample_conflict_pairs(BindingTask(lines=3), rng, 1)
    with pytest.raises(BindscopeError, match="27 lines need 27 variables"):
        sample_root_pairs(BindingTask(), rng, 1, n_lines=27)


@pytest.mark.parametrize("task", TASKS)
def test_name_pairs_ask_the_same_program_for_a_variable_of_another_value(task: BindingTask) -> None:
    pairs = sample_name_pairs(task, np.random.default_rng(8), 200)
    for row, (base, other) in enumerate(both_programs(pairs)):
        assert base.assignments == other.assignments
        assert base.answer == pairs.base_answers[row] != pairs.counterfactual_answers[row] == other.answer
        assert min(base.root_line, other.root_line) >= 3
        assert pairs.changed_positions[row] == pairs.query_position
        positions = [position for position in pairs.chain_positions[row] if position >= 0]
        assert (*positions, pairs.query_position, pairs.colon_position) == chain_positions(base)


@pytest.mark.parametrize("task", TASKS)
def test_name_pairs_can_change_one_reference_of_the_chain(task: BindingTask) -> None:
    pairs = sample_name_pairs(task, np.random.default_rng(9), 200, change="reference")
    changed_hops = set()
    for row, (base, other) in enumerate(both_programs(pairs)):
        assert base.query == other.query
        assert base.answer == pairs.base_answers[row] != pairs.counterfactual_answers[row] == other.answer
        assert min(base.root_line, other.root_line) >= 3
        assert max(base.depth, other.depth) <= task.max_depth
        (changed,) = np.flatnonzero(pairs.base_tokens[row] != pairs.counterfactual_tokens[row])
        assert changed == pairs.changed_positions[row]
        changed_hops.add(list(pairs.chain_positions[row]).index(changed))
        if task.held_out:
            assert not task.held_out_combinations[ord(other.query) - ord("a"), other.answer]
    assert changed_hops == {1, 2, 3}


def test_name_pairs_are_balanced_over_depths_on_their_base_side() -> None:
    for change, depths in (("query", range(1, 5)), ("reference", range(2, 5))):
        pairs = sample_name_pairs(BindingTask(), np.random.default_rng(10), 2000, change=change)  # type: ignore[arg-type]
        counts = np.bincount(pairs.labels["depth"].ravel(), minlength=5)[depths.start :]
        np.testing.assert_allclose(counts / 2000, 1 / len(depths), atol=0.04)
        assert set(pairs.counterfactual.labels["depth"].ravel()) == set(range(depths.start, 5))


def test_name_pairs_that_cannot_exist_are_refused() -> None:
    rng = np.random.default_rng(11)
    with pytest.raises(BindscopeError, match="'query' or 'reference'"):
        sample_name_pairs(BindingTask(), rng, 1, change="constant")  # type: ignore[arg-type]
    with pytest.raises(BindscopeError, match=r"depths 1 to 2 were asked for.*have depths 2 to 4"):
        sample_name_pairs(BindingTask(), rng, 1, change="reference", depths=range(1, 3))
