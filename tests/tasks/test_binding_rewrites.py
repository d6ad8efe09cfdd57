"""Programs with two writes of a variable: the reference interpreter agrees about base and source, and every digit tells its write."""

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import BindingTask, Program
from bindscope.tasks.binding.rewrites import (
    OPERATIONS,
    SITUATIONS,
    WRITE_POSITIONS,
    sample_overwrites,
    sample_write_pairs,
)

TASKS = [
    BindingTask(lines=8, max_depth=3, reassign=0.3),
    BindingTask(lines=10, max_depth=2, reassign=0.4, held_out=0.2),
]


def read_sides(drawn) -> list[tuple[Program, Program]]:
    sides = ([Program.from_tokens(row) for row in side] for side in (drawn.pairs.base_tokens, drawn.pairs.counterfactual_tokens))  # fmt: skip
    return list(zip(*sides))


def writes_of(program: Program, name: str) -> list[int]:
    return [line for line, assignment in enumerate(program.assignments) if assignment.variable == name]


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("task", TASKS)
def test_the_interpreter_answers_with_the_write_that_is_in_force(task: BindingTask, situation: str) -> None:
    drawn = sample_write_pairs(task, np.random.default_rng(0), 20, situation)
    for row, (base, source) in enumerate(read_sides(drawn)):
        first, last, asked = (int(line) for line in drawn.lines[row])
        name = base.assignments[first].variable
        assert writes_of(base, name) == writes_of(source, name) == [first, last]
        assert first >= 2
        assert base.query_line == source.query_line == asked + 1
        assert base.references == source.references
        chosen = 0 if situation == "later" else 1
        assert base.answer == drawn.old[row, chosen]
        assert source.answer == drawn.new[row, chosen]
        assert len({*drawn.old[row], *drawn.new[row]}) == 4
        assert not set(drawn.new[row].tolist()) & set(base.values)
        inside = {"query": asked == last, "earlier": first < last < asked, "later": first < asked < last}
        assert inside[situation]
        changed = {line for line in range(task.lines) if base.assignments[line] != source.assignments[line]}
        assert changed == {first, last}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("task", TASKS)
def test_without_the_overwriting_name_the_first_write_is_the_answer(task: BindingTask, operation: str) -> None:
    drawn = sample_overwrites(task, np.random.default_rng(1), 20, operation)
    differ = drawn.pairs.base_tokens != drawn.pairs.counterfactual_tokens
    assert (differ.sum(1) == 1).all()
    for row, (base, source) in enumerate(read_sides(drawn)):
        first, line = (int(line) for line in drawn.lines[row])
        assert differ[row, 4 * line]
        assert base.query == source.query
        assert (base.query_line, source.query_line) == (line + 1, first + 1)
        assert base.assignments[line].is_constant == (operation == "constant")
        assert source.assignments[line].variable not in {each.variable for each in base.assignments}
        assert line + 1 not in base.references
        assert base.answer != source.answer
        assert [base.values[at] for at in range(task.lines)] == list(source.values)


def test_marks_are_the_columns_of_their_names() -> None:
    drawn = sample_write_pairs(TASKS[0], np.random.default_rng(2), 6, "later")
    marks = drawn.marks()
    assert tuple(marks) == WRITE_POSITIONS
    for name, lines in zip(WRITE_POSITIONS, drawn.lines.T):
        np.testing.assert_array_equal(np.argwhere(marks[name])[:, 1], 4 * lines + 2)
    assert (marks["query"].argmax(1) == 33).all()
    assert (marks["colon"].argmax(1) == 34).all()
    assert not sample_write_pairs(TASKS[0], np.random.default_rng(2), 6, "query").marks()["reference"].any()
    operations = sample_overwrites(TASKS[0], np.random.default_rng(2), 6, "copy")
    after = operations.marks()["lines after"]
    for row, line in enumerate(operations.lines[:, 1]):
        assert np.flatnonzero(after[row]).tolist() == list(range(4 * line + 4, 32))
        assert np.flatnonzero(operations.marks()["line"][row]).tolist() == list(range(4 * line, 4 * line + 4))


def test_programs_that_never_assign_twice_have_no_such_pairs() -> None:
    with pytest.raises(BindscopeError, match="only 0 of 2 were found"):
        sample_write_pairs(BindingTask(lines=4, max_depth=2), np.random.default_rng(0), 2, "query")


@pytest.mark.parametrize("task", TASKS)
def test_any_line_but_the_first_ones_and_the_last_may_overwrite(task: BindingTask) -> None:
    lines = sample_overwrites(task, np.random.default_rng(2), 400, "reference").lines[:, 1]
    assert lines.max() == task.lines - 2
