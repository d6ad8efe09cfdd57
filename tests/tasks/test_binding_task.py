"""The binding family as a task: its settings, its splits, and what training never shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.schema import from_mapping, to_mapping
from bindscope.tasks.binding import BindingTask, tokens_to_programs
from bindscope.tasks.binding.combinations import hold_out_combinations
from bindscope.tasks.task import Batch, supervise_every_token

IMPOSSIBLE = [
    ({"lines": 1}, "task.lines: must lie between 2 and 30"),
    ({"lines": 31, "reassign": 0.5}, "task.lines: must lie between 2 and 30"),
    ({"lines": 27}, "task.lines: 27 lines need 27 variables and there are 26"),
    ({"lines": 6, "n_variables": 5}, "task.lines: 6 lines need 6 variables and there are 5"),
    ({"max_depth": 0}, "task.max_depth: must lie between 1 and 13"),
    ({"max_depth": 14}, "task.max_depth: must lie between 1 and 13"),
    ({"n_variables": 27}, "task.n_variables: must lie between 1 and 26"),
    ({"n_constants": 0}, "task.n_constants: must lie between 1 and 10"),
    ({"queries": 0}, "task.queries: must be at least 1"),
    ({"min_lines": 17}, "task.min_lines: must lie between 2 and lines = 16"),
    ({"min_lines": 1}, "task.min_lines: must lie between 2 and lines = 16"),
    ({"p_constant": 1.5}, "task.p_constant: must lie between 0 and 1"),
    ({"p_constant": 1.0}, "task.p_constant: 1 makes every line a constant"),
    ({"reassign": -0.1}, "task.reassign: must lie between 0 and 1"),
    ({"held_out": 1.0}, "task.held_out: must be at least 0 and below 1"),
    ({"held_out": 0.97}, "task.held_out: 0.97 of 260 combinations leaves a variable or a constant with none"),
    ({"held_out_seed": -1}, "task.held_out_seed: must not be negative"),
    ({"exponent": float("nan")}, "task.exponent: must lie between -10 and 10"),
    ({"balance": "rejections"}, "task.balance: must be 'rejection', 'weights' or 'none'"),
]


@pytest.mark.parametrize(("settings", "message"), IMPOSSIBLE)
def test_impossible_settings_are_refused_in_one_sentence(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BindscopeError) as error:
        BindingTask(**settings)
    assert str(error.value).startswith(message)


def test_a_task_survives_as_plain_data() -> None:
    task = BindingTask(lines=6, max_depth=3, queries=6, min_lines=2, balance="weights")
    assert from_mapping(BindingTask, to_mapping(task)) == task
    assert to_mapping(task)["family"] == "binding"


def test_the_papers_programs_take_67_tokens_of_40() -> None:
    task = BindingTask()
    assert (task.n_positions, len(task.vocabulary), task.d_out, task.target_kind) == (67, 40, 40, "token")
    symbols = [task.vocabulary.ids[symbol] for symbol in ("0", "9", "a", "z", "=", "\n", "#", ":")]
    assert symbols == [0, 9, 10, 35, 36, 37, 38, 39]


def test_training_lengths_are_drawn_evenly_and_evaluation_is_at_full_length() -> None:
    task = BindingTask(lines=6, max_depth=3, queries=2, min_lines=2, balance="weights")
    lengths = []
    for seed in range(500):
        batch = task.sample_batch(np.random.default_rng([11, seed]), 2)
        assert (batch.labels["lines"] == (batch.tokens.shape[1] - 6) // 4).all()
        lengths.append(int(batch.labels["lines"][0, 0]))
    np.testing.assert_allclose(np.bincount(lengths, minlength=7)[2:] / 500, 0.2, atol=0.07)
    splits = task.sample_evaluation(np.random.default_rng(0), 10)
    assert splits["test"].tokens.shape == (10, 27)
    assert splits["test"].targets.shape == (10, 1)


@pytest.mark.parametrize("reassign", [0.0, 0.3])
@pytest.mark.parametrize("balance", ["rejection", "weights", "none"])
def test_training_never_shows_a_held_out_combination(balance: Any, reassign: float) -> None:
    task = BindingTask(lines=10, held_out=0.2, balance=balance, reassign=reassign)
    batch = task.sample_batch(np.random.default_rng(1), 3000)
    assigned, answered = combinations_shown(batch)
    assert not (assigned & task.held_out_combinations).any()
    assert not (answered & task.held_out_combinations).any()
    assert (answered | task.held_out_combinations).all()  # and everything else is shown


def combinations_shown(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Masks [variable, constant] of direct assignments and of queried variables with their answers."""
    programs, queries = tokens_to_programs(batch.tokens)
    assigned, answered = np.zeros((26, 10), bool), np.zeros((26, 10), bool)
    assigned[programs.variables[programs.is_constant], programs.value[programs.is_constant]] = True
    rows = np.arange(len(programs))
    answered[programs.variables[rows, queries[:, 0]], batch.targets[:, 0]] = True
    return assigned, answered


def test_every_question_of_the_held_out_split_needs_a_held_out_combination() -> None:
    task = BindingTask(held_out=0.1)
    splits = task.sample_evaluation(np.random.default_rng(2), 2000)
    assert set(splits) == {"test", "held_out"}
    needs = {name: needs_held_out(task, split) for name, split in splits.items()}
    assert needs["held_out"].all()
    assert not needs["test"].any()
    depths = np.bincount(splits["held_out"].labels["depth"].ravel(), minlength=5)[1:] / 2000
    np.testing.assert_allclose(depths, 0.25, atol=0.04)


def needs_held_out(task: BindingTask, batch: Batch) -> np.ndarray:
    needs = []
    for tokens in batch.tokens:
        program = task.parse("".join(task.vocabulary.decode(tokens)))
        variables = (program.query, program.assignments[program.root_line - 1].variable)
        needs.append(any(task.held_out_combinations[ord(name) - ord("a"), program.answer] for name in variables))
    return np.array(needs)


def test_held_out_combinations_depend_on_their_seed_alone() -> None:
    first = hold_out_combinations(26, 10, 0.1, seed=0)
    assert first.sum() == 26
    np.testing.assert_array_equal(first, BindingTask(lines=4, held_out=0.1, p_constant=0.2).held_out_combinations)
    assert (first != hold_out_combinations(26, 10, 0.1, seed=1)).any()
    most = hold_out_combinations(26, 10, 0.85, seed=0)
    assert not most.all(0).any()
    assert not most.all(1).any()


def test_supervising_every_token_counts_as_separate_sequences_would() -> None:
    task = BindingTask(lines=5, max_depth=3, queries=4)
    shared = task.sample_batch(np.random.default_rng(3), 2)
    everything = supervise_every_token(shared)
    assert everything.weights is not None
    counted: dict[tuple[int, int, int], float] = {}  # (row, position, next token) → how often it is a target
    for column, weight, targets in zip(everything.target_positions, everything.weights, everything.targets.T):
        for row, target in enumerate(targets):
            key = (row, int(shared.layout.position_ids[column]), int(target))
            counted[key] = counted.get(key, 0) + float(weight)
    separate: dict[tuple[int, int, int], float] = {}
    for row in range(2):
        for query in range(4):
            block = shared.tokens[row, 20 + 3 * query : 23 + 3 * query]
            sequence = [*shared.tokens[row, :20], *block, shared.targets[row, query]]
            for position in range(23):
                key = (row, position, int(sequence[position + 1]))
                separate[key] = separate.get(key, 0) + 1
    assert counted == separate


def test_with_reassignment_programs_may_be_longer_than_the_alphabet() -> None:
    task = BindingTask(lines=30, n_variables=4, reassign=0.1)
    programs, queries = tokens_to_programs(task.sample_batch(np.random.default_rng(4), 200).tokens)
    assert programs.variables.max() < 4
    assert programs.live.sum(1).max() <= 4
    assert programs.live[np.arange(200), queries[:, 0]].all()
