"""Statements about the operators of assign-and-add: arithmetic at any modulus, and two groups whose order matters."""

from __future__ import annotations

import hashlib
from math import gcd

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.schema import from_mapping, to_mapping
from bindscope.tasks.assign_add import SPLIT_NAMES, AssignAddTask
from bindscope.tasks.assign_add.operators import combine, commutes, list_elements, multiplication_table

GROUPS = [("symmetric", 6), ("symmetric", 24), ("symmetric", 120), ("dihedral", 6), ("dihedral", 10), ("dihedral", 24)]


@pytest.mark.parametrize(("operator", "modulus"), GROUPS)
def test_a_group_is_closed_associative_with_inverses_zero_its_identity_and_does_not_commute(operator, modulus):
    table = multiplication_table(operator, modulus)
    numbers = np.arange(modulus)
    assert (table[0] == numbers).all()
    assert (table[:, 0] == numbers).all()
    for axis in (0, 1):  # each element once in every row and column, so each has one inverse
        assert (np.sort(table, axis) == np.expand_dims(numbers, 1 - axis)).all()
    left = table[table]  # [a, b, c]: (a@b)@c
    right = table[numbers[:, None, None], table]  # a@(b@c)
    assert (left == right).all()
    assert (table != table.T).any()


@pytest.mark.parametrize(("operator", "modulus"), GROUPS)
def test_a_product_does_to_letters_what_its_factors_do_one_after_the_other(operator, modulus):
    elements, table = list_elements(operator, modulus).tolist(), multiplication_table(operator, modulus)
    rng = np.random.default_rng(0)
    for a, b in rng.integers(modulus, size=(200, 2)):
        for letter in range(len(elements[0])):
            assert elements[table[a, b]][letter] == elements[a][elements[b][letter]]


def test_permutations_are_numbered_in_dictionary_order_and_corners_by_turn_then_mirror():
    assert list_elements("symmetric", 6).tolist() == [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
    table = multiplication_table("dihedral", 10)
    assert table[3, 4] == 2  # turns add up modulo five
    assert table[5, 6] == 4  # two mirrors are a turn, by the difference of their axes
    assert table[2, 5] == 7
    assert table[5, 2] == 8


def test_a_dihedral_group_of_a_triangle_is_the_symmetric_group_of_its_corners():
    dihedral, symmetric = (list_elements(name, 6) for name in ("dihedral", "symmetric"))
    same = np.array([(symmetric == element).all(axis=1).argmax() for element in dihedral])
    assert (same[multiplication_table("dihedral", 6)] == multiplication_table("symmetric", 6)[np.ix_(same, same)]).all()


@pytest.mark.parametrize("modulus", [2, 5, 12, 13, 59])
def test_arithmetic_is_that_of_python_at_prime_and_composite_moduli(modulus):
    for n1 in range(modulus):
        for n2 in range(modulus):
            assert combine("+", modulus, n1, n2) == (n1 + n2) % modulus
            assert combine("-", modulus, n1, n2) == (n1 - n2) % modulus
            assert combine("*", modulus, n1, n2) == (n1 * n2) % modulus


@pytest.mark.parametrize("modulus", [12, 13])
def test_a_product_can_be_undone_only_by_a_factor_without_a_common_divisor_with_the_modulus(modulus):
    numbers = np.arange(modulus)
    for factor in range(modulus):
        n_answers = len(set(combine("*", modulus, np.full(modulus, factor), numbers).tolist()))
        assert n_answers == modulus // gcd(factor, modulus)
    assert (combine("*", modulus, np.zeros(modulus, int), numbers) == 0).all()


@pytest.mark.parametrize(("operator", "modulus"), [("+", 12), ("-", 12), ("*", 12), *GROUPS])
def test_an_operator_that_is_said_to_commute_has_a_symmetric_table_and_no_other(operator, modulus):
    n1, n2 = np.meshgrid(np.arange(modulus), np.arange(modulus), indexing="ij")
    table = combine(operator, modulus, n1, n2)
    assert (table == table.T).all() == commutes(operator)


@pytest.mark.parametrize(("operator", "modulus"), [("symmetric", 24), ("dihedral", 14), ("-", 15)])
def test_sums_of_an_operator_that_does_not_commute_are_sampled_rendered_and_parsed_in_order(operator, modulus):
    task = AssignAddTask(modulus=modulus, operator=operator, n_variables=5)
    splits = task.sample_evaluation(np.random.default_rng(0), 60)
    assert tuple(splits) == SPLIT_NAMES
    for batch in (task.sample_batch(np.random.default_rng(1), 60), *splits.values()):
        n1, n2 = batch.labels["n1"][:, 0], batch.labels["n2"][:, 0]
        assert (batch.targets[:, 0] == combine(operator, modulus, n1, n2)).all()
        assert (combine(operator, modulus, n2, n1) != batch.targets[:, 0]).any()
        for row in batch.tokens:
            assert (task.parse(task.render(row)) == row).all()
        reread = task.to_batch(batch.tokens)
        assert (reread.targets == batch.targets).all()
        assert set(reread.labels) == set(batch.labels)


def test_composition_is_typed_with_an_at_sign():
    task = AssignAddTask(modulus=24, operator="symmetric")
    tokens = task.parse("a=3 b=20 | a @ 7")
    assert task.render(tokens) == "a=3 b=20 | a@7"
    assert task.vocabulary.symbols[24:27] == ("@", "=", "PAD")
    elements = list_elements("symmetric", 24)
    assert elements[task.solve(tokens)].tolist() == elements[3][elements[7]].tolist()
    with pytest.raises(BindscopeError, match=r"'a\+7' is not a sum of two operands; write for example 'b@19'"):
        task.parse("a=3 | a+7")
    with pytest.raises(BindscopeError, match="for example 'b-5'"):
        AssignAddTask(modulus=6, operator="-").parse("a=3 | a+5")


@pytest.mark.parametrize(("operator", "modulus"), [("-", 13), ("symmetric", 6), ("dihedral", 12)])
def test_a_swapped_pair_counts_as_seen_only_where_it_is_the_same_sum(operator, modulus):
    split = AssignAddTask(modulus=modulus, operator=operator).sample_split(np.random.default_rng(0), 20, "0add")
    assert "swap_seen" not in split.labels
    assert (
        "swap_seen"
        in AssignAddTask(modulus=modulus, operator="*").sample_split(np.random.default_rng(0), 20, "0add").labels
    )


@pytest.mark.parametrize(
    ("operator", "modulus"), [("symmetric", 59), ("symmetric", 720), ("dihedral", 7), ("dihedral", 4)]
)
def test_a_group_of_another_size_is_refused_with_the_sizes_there_are(operator, modulus):
    with pytest.raises(BindscopeError, match=f"task.modulus: task.operator '{operator}' .*, got {modulus}"):
        AssignAddTask(modulus=modulus, operator=operator)


@pytest.mark.parametrize(("n_variables", "n_restricted"), [(3, 1), (4, 2), (5, 1), (12, 4), (20, 10), (26, 1)])
def test_as_many_variables_as_asked_are_kept_from_either_position(n_variables, n_restricted):
    task = AssignAddTask(modulus=7, n_variables=n_variables, n_restricted=n_restricted)
    batch = task.sample_batch(np.random.default_rng(0), 20_000)
    first, second = (set(batch.labels[name][:, 0]) - {-1} for name in ("first_variable", "second_variable"))
    assert first == set(range(n_variables - n_restricted))
    assert second == set(range(n_restricted, n_variables))
    assert batch.labels["n_assignments"].max() == min(6, n_variables)
    for name, split in task.sample_evaluation(np.random.default_rng(0), 40).items():
        new_first = split.labels["first_variable"][:, 0] >= n_variables - n_restricted
        new_second = (split.labels["second_variable"][:, 0] < n_restricted) & (
            split.labels["second_variable"][:, 0] >= 0
        )
        n_new = {"1var": 1, "2var1": 1, "2var2": 2}.get(name, 0)
        assert (new_first.astype(int) + new_second == n_new).all(), name


@pytest.mark.parametrize("settings", [{"n_restricted": 0}, {"n_restricted": 1, "n_variables": 2}, {"n_restricted": 7}])
def test_a_restriction_that_leaves_a_split_empty_is_refused(settings):
    with pytest.raises(BindscopeError, match=r"task\.n_"):
        AssignAddTask(**settings)


def test_the_published_task_draws_the_same_rows_as_before_there_were_options():
    digest, rng = hashlib.sha256(), np.random.default_rng(7)
    batches = [AssignAddTask().sample_batch(rng, 512) for _ in range(3)]
    batches += AssignAddTask().sample_evaluation(rng, 64).values()
    for batch in batches:
        digest.update(batch.tokens.tobytes())
        digest.update(batch.targets.tobytes())
    assert digest.hexdigest() == "7d4c82b90c838ed6e4cfa396e42a6a43e1d28ec7b947d9a5890fbfa2cca9a6c8"


def test_settings_written_before_there_were_options_are_read_as_the_published_ones():
    old = {name: value for name, value in to_mapping(AssignAddTask()).items() if name != "n_restricted"}
    assert from_mapping(AssignAddTask, old) == AssignAddTask()
