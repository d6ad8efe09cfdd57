"""Programs unlike those of training, met by models whose answers to them are known."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.measures.binding.generalisation import compare_held_out, find_grammar, length_depth_grid
from bindscope.tasks.binding import BindingTask, sample_questions
from bindscope.theory.constructed import construct_dereferencer
from measures.answering import Answering, say_line_1, solve

TASK = BindingTask(lines=6, max_depth=3)


def grid(model, lengths, depths, n: int = 12, task: BindingTask = TASK, **more):
    return length_depth_grid(model, task, lengths, depths, n, np.random.default_rng(0), **more)


def test_the_constructed_model_knows_its_lengths_and_has_no_positions_for_others():
    calls: list[tuple[int, int]] = []
    table = grid(construct_dereferencer(6, 3), range(2, 9), range(1, 5), on_progress=lambda *call: calls.append(call))
    known = table.accuracy.sel(lines=slice(3, 6), depth=slice(1, 3))
    assert (known == 1).all()
    assert table.accuracy.sel(lines=2, depth=2) == 1
    for lines, depth in ((2, 3), (3, 4), (7, 1), (8, 4)):  # too deep for their length, or too long for the model
        cell = table.sel(lines=lines, depth=depth)
        assert cell.n == 0
        assert np.isnan([cell.accuracy, cell.accuracy_low, cell.accuracy_high, cell.line_1, cell.p_constant]).all()
    assert "above 6 lines, for which this model has no learned positions" in table.attrs["missing"]
    assert calls[-1] == (28, 28)


def test_the_line_1_heuristic_is_seen_where_line_1_is_wrong():
    table = grid(Answering(say_line_1), [4, 12], [1, 2, 5], n=40)
    possible = table.n.values > 0
    assert possible.tolist() == [[True, True, False], [True, True, True]]
    assert (table.line_1.values[possible] == 1).all()
    np.testing.assert_array_equal(table.accuracy, table.line_1_right)
    heuristic = table.line_1_where_wrong.values
    assert (heuristic[table.n_wrong.values > 0] == 1).all()
    assert np.isnan(heuristic[table.n_wrong.values == 0]).all()
    right = np.where(possible, table.line_1_right * table.n, 0).round()
    np.testing.assert_array_equal(right + table.n_wrong, table.n)


@pytest.mark.parametrize("selection", ["misleading", "conflict"])
def test_only_what_tells_heuristic_and_chain_apart_can_be_asked(selection):
    heuristic = grid(Answering(say_line_1), [2, 7], [1, 2, 3], n=15, selection=selection)
    assert heuristic.n.sel(lines=2).sum() == 0  # two lines leave no third position for the answer
    asked = heuristic.sel(lines=7, depth=[2, 3])
    assert (asked.n == 15).all()
    assert (asked.n_wrong == 15).all()
    assert (asked.accuracy == 0).all()
    assert (heuristic.n.sel(lines=7, depth=1) == 0) == (selection == "conflict")  # there the nearest constant is right
    solver = grid(Answering(solve), [7], [3], n=15, selection=selection)
    assert solver.accuracy == solver.accuracy_where_wrong == 1
    assert solver.line_1_where_wrong == 0


def test_the_deepest_chains_of_the_paper_can_be_asked():
    table = grid(Answering(solve), [13, 25], [13], n=5)
    assert table.accuracy.values.tolist() == [[1], [1]]
    assert table.n.values.tolist() == [[5], [5]]


@pytest.mark.parametrize(("n_lines", "depth"), [(6, 3), (13, 13), (9, 7)])
def test_a_cell_s_programs_have_its_length_and_depth(n_lines, depth):
    rng = np.random.default_rng(0)
    grammar = find_grammar(TASK, n_lines, depth, rng)
    programs, queries = sample_questions(rng, grammar, 8, n_lines, depths=range(depth, depth + 1))
    assert programs.n_lines == n_lines
    assert (programs.depth[np.arange(8), queries[:, 0]] == depth).all()
    assert programs.depth.max() <= max(depth, TASK.max_depth)


def test_the_task_s_own_grammar_is_kept_where_it_serves():
    own = find_grammar(TASK, 6, 2, np.random.default_rng(0))
    assert (own.p_constant, own.exponent, own.max_depth) == (TASK.p_constant, TASK.exponent, TASK.max_depth)
    assert find_grammar(TASK, 12, 12, np.random.default_rng(0)).p_constant < TASK.p_constant
    assert find_grammar(TASK, 4, 5, np.random.default_rng(0)) is None
    assert find_grammar(TASK, 27, 1, np.random.default_rng(0)) is None


def test_held_out_combinations_are_a_split_of_their_own():
    task = BindingTask(lines=6, max_depth=3, held_out=0.1)
    table = compare_held_out(construct_dereferencer(6, 3), task, 60, np.random.default_rng(0))
    assert table.split.values.tolist() == ["test", "held_out"]
    assert table.accuracy.values.tolist() == [1, 1]
    assert table.n.values.tolist() == table.n_by_depth.sum("depth").values.tolist() == [60, 60]
    held = task.held_out_combinations

    def forgets(tokens):  # knows nothing of an answer whose combination with the asked variable was held out
        answers = solve(tokens)
        return np.where(held[tokens[:, -2] - 10, answers], (answers + 1) % 10, answers)

    table = compare_held_out(Answering(forgets), task, 60, np.random.default_rng(0))
    assert float(table.accuracy.sel(split="test")) == 1
    assert float(table.accuracy.sel(split="held_out")) < 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: grid(Answering(solve), [4], [1], n=0), "n must be at least 1"),
        (lambda: grid(Answering(solve), [], [1]), "at least one length"),
        (lambda: grid(Answering(solve), [4], [1], selection="odd"), "choose one of all"),
        (lambda: grid(Answering(solve), [0], [1]), "all at least 1"),
        (lambda: grid(Answering(solve), [4], [9]), "cells deeper than their program is long"),
        (lambda: grid(construct_dereferencer(6, 3), [7], [1]), "positions for 6 lines at most"),
        (lambda: compare_held_out(Answering(solve), TASK, 5, np.random.default_rng(0)), "holds out no combinations"),
    ],
)
def test_what_no_program_can_show_is_refused(make, message):
    with pytest.raises(BindscopeError, match=message):
        make()
