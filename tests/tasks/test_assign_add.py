"""Statements about the assign-and-add task: its sequences, its held-out pairs, its training rows and its nine splits."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.schema import from_mapping, to_mapping
from bindscope.tasks.assign_add import SPLIT_NAMES, AssignAddTask, PairSplit
from bindscope.tasks.task import Batch

TASK = AssignAddTask()
tasks = st.builds(
    AssignAddTask,
    modulus=st.integers(5, 61),
    n_variables=st.integers(4, 26),
    pair_fraction=st.floats(0.2, 0.8),
    two_variable_frequency=st.floats(0, 3),
    split=st.sampled_from(["ordered", "both_orders"]),
    split_seed=st.integers(0, 1000),
    operator=st.sampled_from(["+", "-", "*"]),
)
seeds = st.integers(0, 2**32 - 1)


def solve_text(task: AssignAddTask, text: str) -> int:
    """A second interpreter, over text: evaluates the sum with Python's own names and numbers."""
    assignments, _, sum_text = text.replace("_ ", "").partition("|")
    names = dict(assignment.split("=") for assignment in assignments.split())
    return eval(sum_text, {}, {name: int(value) for name, value in names.items()}) % task.modulus


def trained_positions(batch: Batch, task: AssignAddTask) -> tuple[np.ndarray, np.ndarray]:
    """Read from the tokens alone: how many operands are variables, and how many of them training never shows there."""
    first, second = (batch.tokens[:, column] - task.modulus - 3 for column in (13, 14))
    n_variables = (first >= 0).astype(int) + (second >= 0)
    n_invalid = (first >= task.n_variables - 2).astype(int) + ((second >= 0) & (second < 2))
    return n_variables, n_invalid


def is_trained_pair(batch: Batch, task: AssignAddTask) -> np.ndarray:
    values = task.sequences.operand_values(batch.tokens)
    return task.pairs.is_trained[values[:, 0], values[:, 1]]


@settings(max_examples=40)
@given(tasks, seeds)
def test_every_sampled_sequence_parses_back_and_solves_to_its_target(task: AssignAddTask, seed: int) -> None:
    batch = task.sample_batch(np.random.default_rng(seed), 16)
    for row, target in zip(batch.tokens, batch.targets):
        text = task.render(row)
        assert (task.parse(text) == row).all()
        assert solve_text(task, text) == target[0] == task.solve(row) == task.locate(row).answer


@settings(max_examples=40)
@given(tasks, seeds)
def test_training_rows_use_only_trained_pairs_and_allowed_positions(task: AssignAddTask, seed: int) -> None:
    batch = task.sample_batch(np.random.default_rng(seed), 200)
    assert is_trained_pair(batch, task).all()
    assert (trained_positions(batch, task)[1] == 0).all()


@settings(max_examples=25)
@given(tasks, seeds)
def test_each_split_satisfies_its_definition(task: AssignAddTask, seed: int) -> None:
    splits = task.sample_evaluation(np.random.default_rng(seed), 50)
    assert tuple(splits) == SPLIT_NAMES
    for name, batch in splits.items():
        n_variables, n_invalid = trained_positions(batch, task)
        assert (n_variables == int(name[0])).all(), name
        assert (n_invalid == {"1var": 1, "2var1": 1, "2var2": 2}.get(name, 0)).all(), name
        assert (is_trained_pair(batch, task) != name.endswith("add")).all(), name
        assert (task.solve(batch.tokens) == batch.targets[:, 0]).all(), name


@settings(max_examples=40)
@given(tasks, seeds)
def test_sequences_have_one_to_six_assignments_of_distinct_variables_and_never_add_one_to_itself(
    task: AssignAddTask, seed: int
) -> None:
    batch = task.sample_batch(np.random.default_rng(seed), 50)
    for row in batch.tokens:
        sequence = task.locate(row)
        names = [assignment.variable for assignment in sequence.assignments]
        assert 1 <= len(names) == len(set(names)) <= 6
        first, second = sequence.operands
        assert first.variable is None or first.variable != second.variable


@settings(max_examples=40)
@given(tasks, seeds)
def test_positions_point_at_the_tokens_they_name(task: AssignAddTask, seed: int) -> None:
    batch = task.sample_batch(np.random.default_rng(seed), 20)
    for row, columns in zip(batch.tokens, task.sequences.value_positions(batch.tokens)):
        sequence = task.locate(row)
        for assignment in sequence.assignments:
            assert task.vocabulary.symbols[row[assignment.position]] == assignment.variable
            assert row[assignment.value_position] == assignment.value
        for operand, column, own_column in zip(sequence.operands, columns, (13, 14)):
            assert operand.position == own_column
            assert operand.value_position == column
            assert row[column] == operand.value
            assert (column == own_column) == (operand.variable is None)


@settings(max_examples=20)
@given(tasks, seeds)
def test_labels_say_what_the_tokens_say(task: AssignAddTask, seed: int) -> None:
    batch = task.sample_batch(np.random.default_rng(seed), 60)
    reread = task.to_batch(batch.tokens)
    assert set(reread.labels) == set(batch.labels)
    for name, values in batch.labels.items():
        assert values.shape == (60, 1)
        assert (values == reread.labels[name]).all(), name
    assert (batch.targets == reread.targets).all()


def test_the_same_generator_state_gives_the_same_batch() -> None:
    first, second = (TASK.sample_batch(np.random.default_rng(3), 64) for _ in range(2))
    assert (first.tokens == second.tokens).all()
    assert (first.tokens != TASK.sample_batch(np.random.default_rng(4), 64).tokens).any()


def test_the_published_split_has_723_held_out_pairs_with_their_swap_in_training_and_322_without() -> None:
    pairs = TASK.pairs
    assert (len(pairs.trained), len(pairs.held_out)) == (2436, 1045)
    assert pairs.is_trained.T[tuple(pairs.held_out.T)].sum() == 723
    listed = [(n1, n2) for n1 in range(59) for n2 in range(59)]
    assert set(map(tuple, pairs.trained.tolist())) == set(random.Random(42).sample(listed, 2436))


@settings(max_examples=20)
@given(st.integers(3, 30), st.floats(0.05, 0.95), seeds)
def test_a_split_by_both_orders_never_separates_a_pair_from_its_swap(modulus: int, fraction: float, seed: int) -> None:
    trained = PairSplit(modulus, fraction, "both_orders", seed).is_trained
    assert (trained == trained.T).all()
    assert np.triu(trained).sum() == int(fraction * (modulus * (modulus + 1) // 2))


def test_a_held_out_split_divides_by_whether_the_swap_was_trained() -> None:
    split = TASK.sample_split(np.random.default_rng(0), 3000, "0add")
    seen = split.labels["swap_seen"][:, 0]
    parts = {"swap seen": split.take(np.flatnonzero(seen)), "both held out": split.take(np.flatnonzero(~seen))}
    assert len(parts["swap seen"]) / len(split) == pytest.approx(723 / 1045, abs=0.04)
    for name, part in parts.items():
        values = TASK.sequences.operand_values(part.tokens)
        assert not TASK.pairs.is_trained[values[:, 0], values[:, 1]].any()
        assert (TASK.pairs.is_trained[values[:, 1], values[:, 0]] == (name == "swap seen")).all()


@pytest.mark.parametrize("frequency", [1.0, 0.25, 0.0])
def test_fractions_of_sums_with_none_one_and_two_variables_follow_the_row_counts(frequency: float) -> None:
    rows = np.array([12, 20, 10 * frequency])
    task = AssignAddTask(two_variable_frequency=frequency)
    n_variables = trained_positions(task.sample_batch(np.random.default_rng(0), 40_000), task)[0]
    fractions = np.bincount(n_variables, minlength=3) / 40_000
    assert fractions == pytest.approx(rows / rows.sum(), abs=0.01)
    if frequency == 1:
        assert fractions == pytest.approx([0.286, 0.476, 0.238], abs=0.01)


def test_assignment_counts_orders_and_gaps_are_uniform() -> None:
    batch = TASK.sample_split(np.random.default_rng(1), 30_000, "1tr")
    counts = batch.labels["n_assignments"][:, 0]
    assert np.bincount(counts, minlength=7)[1:] / 30_000 == pytest.approx(np.full(6, 1 / 6), abs=0.01)
    values = TASK.sequences.value_positions(batch.tokens)
    in_prefix = np.where(values[:, 0] < 12, values[:, 0], values[:, 1])
    full = np.bincount(in_prefix[counts == 6] // 2, minlength=6) / (counts == 6).sum()
    assert full == pytest.approx(np.full(6, 1 / 6), abs=0.03)  # with no PADs, each block is as likely the operand's
    pads_before_one_block = in_prefix[counts == 1] - 1
    assert pads_before_one_block.mean() == pytest.approx(5, abs=0.1)  # ten PADs, two gaps
    assert pads_before_one_block.var() == pytest.approx(2.5, abs=0.25)  # each PAD on its own: binomial(10, 1/2)


def test_the_vocabulary_and_layout_are_the_published_ones() -> None:
    symbols = TASK.vocabulary.symbols
    assert symbols[:59] == tuple(map(str, range(59)))
    assert symbols[59:] == ("+", "=", "PAD", *"abcdefghijkl")
    batch = TASK.sample_batch(np.random.default_rng(0), 8)
    assert batch.tokens.shape == (8, 16)
    assert (TASK.n_positions, TASK.d_out, TASK.target_kind) == (16, 59, "token")
    assert (batch.tokens[:, [12, 15]] == [59, 60]).all()
    assert batch.target_positions.tolist() == [15]


def test_text_without_pads_is_read_with_the_pads_at_the_end() -> None:
    tokens = TASK.parse("c=1, b=17 | b + 19")
    assert TASK.vocabulary.decode(tokens.tolist()) == ["c", "1", "b", "17", *["PAD"] * 8, "+", "b", "19", "="]
    assert TASK.solve(tokens) == 36
    assert TASK.render(tokens) == "c=1 b=17 | b+19"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c=1 b+19", "column 9: no '|'"),
        ("c=1 q=2 | c+1", "column 5: 'q' is not a variable; use a to l"),
        ("c=1 c=2 | c+1", "column 5: 'c' is assigned twice"),
        ("c=59 | c+1", "column 3: '59' is not a number from 0 to 58"),
        ("c= | c+1", "column 3: '' is not a number"),
        ("c | c+1", "column 1: 'c' is not an assignment"),
        ("c=1 | b+1", "column 7: 'b' is used but never assigned"),
        ("c=1 | c+ 60", "column 10: '60' is not a number"),
        ("c=1 | c", "column 6: 'c' is not a sum of two operands"),
        ("c=1 | c-1", "is not a sum of two operands"),
        ("_ a=1 b=2 c=3 d=4 e=5 f=6 | a+1", "column 23: 'f=6' does not fit"),
    ],
)
def test_a_text_that_is_no_sum_is_refused_with_its_column(text: str, message: str) -> None:
    with pytest.raises(BindscopeError) as refusal:
        TASK.parse(text)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    "settings_",
    [
        {"modulus": 1},
        {"n_variables": 3},
        {"n_variables": 27},
        {"pair_fraction": 0.0},
        {"pair_fraction": 1.0},
        {"pair_fraction": 1e-6},
        {"two_variable_frequency": -0.1},
        {"two_variable_frequency": float("nan")},
    ],
)
def test_impossible_settings_are_refused_by_name(settings_: dict[str, float]) -> None:
    with pytest.raises(BindscopeError, match=f"task.{next(iter(settings_))}"):
        AssignAddTask(**settings_)  # type: ignore[arg-type]


def test_unknown_splits_and_unassigned_operands_and_short_rows_are_refused() -> None:
    with pytest.raises(BindscopeError, match="not an evaluation split"):
        TASK.sample_split(np.random.default_rng(0), 4, "3tr")
    row = TASK.parse("c=1 | c+1")
    row[13] = TASK.vocabulary.ids["d"]
    with pytest.raises(BindscopeError, match="never assigns"):
        TASK.solve(row)
    with pytest.raises(BindscopeError, match="16 tokens"):
        TASK.solve(row[:15])


def test_the_task_survives_its_own_mapping() -> None:
    task = AssignAddTask(modulus=31, split="both_orders", two_variable_frequency=0.5)
    assert from_mapping(AssignAddTask, to_mapping(task)) == task


@settings(max_examples=20)
@given(st.floats(0.05, 1), seeds, st.integers(0, 100))
def test_removed_rows_of_two_variables_are_never_shown(fraction: float, seed: int, split_seed: int) -> None:
    task = AssignAddTask(7, 5, two_variable_frequency=fraction, two_variable_rows="removed", split_seed=split_seed)
    n_rows = len(task.allowed_first) * len(task.pairs.trained)
    seen = two_variable_rows(task, seed, 4000)
    assert len(seen) <= round(fraction * n_rows)
    more = AssignAddTask(7, 5, two_variable_frequency=1, two_variable_rows="removed", split_seed=split_seed)
    assert seen <= two_variable_rows(more, seed, 40000)


def two_variable_rows(task: AssignAddTask, seed: int, n: int) -> set[tuple[int, ...]]:
    """Every (first variable, n1, n2) of the sums of two variables in a batch."""
    labels = {name: values[:, 0] for name, values in task.sample_batch(np.random.default_rng(seed), n).labels.items()}
    rows = np.stack([labels[name] for name in ("first_variable", "n1", "n2")], 1)[labels["n_variables"] == 2]
    return {tuple(map(int, row)) for row in rows}


def test_as_many_rows_are_kept_as_the_authors_keep_and_they_are_shown_as_often_as_any_other_row() -> None:
    task = AssignAddTask(two_variable_frequency=0.01, two_variable_rows="removed")
    batch = task.sample_batch(np.random.default_rng(0), 400_000)
    two = batch.labels["n_variables"][:, 0] == 2
    assert len(two_variable_rows(task, 0, 2_000_000)) == 244  # of 24,360
    assert two.mean() == pytest.approx(244 / (32 * 2436 + 244), rel=0.1)
    seconds = np.bincount(batch.labels["second_variable"][two, 0], minlength=12)
    assert (seconds[:2] == 0).all()
    assert (seconds[2:] > 0.5 * two.sum() / 10).all()  # the second variable stays free


def test_all_rows_kept_are_the_rows_that_are_drawn_anyway() -> None:
    task = AssignAddTask(7, 5, two_variable_rows="removed")
    assert two_variable_rows(task, 0, 40000) == two_variable_rows(AssignAddTask(7, 5), 1, 40000)


def test_no_row_of_two_variables_is_kept_at_fraction_zero() -> None:
    task = AssignAddTask(7, 5, two_variable_frequency=0, two_variable_rows="removed")
    assert not two_variable_rows(task, 0, 2000)


def test_a_fraction_of_rows_above_one_is_refused() -> None:
    with pytest.raises(BindscopeError, match="fraction of rows"):
        AssignAddTask(two_variable_frequency=2, two_variable_rows="removed")


@pytest.mark.parametrize("name", SPLIT_NAMES)
def test_a_listed_split_has_each_of_its_sums_once(name: str) -> None:
    task = AssignAddTask(7, 5)
    batch = task.list_split(np.random.default_rng(0), name)
    columns = [batch.labels[label][:, 0] for label in ("first_variable", "second_variable", "n1", "n2")]
    sums = set(zip(*(column.tolist() for column in columns)))
    assert len(sums) == len(batch) == task.count_split(name)
    drawn = task.sample_split(np.random.default_rng(1), 5000, name)
    columns = [drawn.labels[label][:, 0] for label in ("first_variable", "second_variable", "n1", "n2")]
    assert set(zip(*(column.tolist() for column in columns))) <= sums
    assert (batch.targets[:, 0] == task.solve(batch.tokens)).all()


def test_the_listed_held_out_pairs_are_all_of_them() -> None:
    assert TASK.count_split("0add") == len(TASK.list_split(np.random.default_rng(0), "0add")) == 1045
