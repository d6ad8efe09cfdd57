"""Exchange programs: the reference interpreter agrees about both sources, and every digit says where it came from."""

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import BindingTask, Program
from bindscope.tasks.binding.exchanges import sample_exchanges


@pytest.mark.parametrize("asked_later", [True, False])
@pytest.mark.parametrize(
    "task", [BindingTask(), BindingTask(lines=10, max_depth=2, held_out=0.2), BindingTask(lines=12, reassign=0.2)]
)
def test_the_interpreter_agrees_about_base_and_sources(task: BindingTask, asked_later: bool) -> None:
    drawn = sample_exchanges(task, np.random.default_rng(0), 24, asked_later)
    sides = [[Program.from_tokens(row) for row in side.tokens] for side in (drawn.base, drawn.renamed, drawn.exchanged)]
    for row, (base, renamed, exchanged) in enumerate(zip(*sides)):
        asked, other = int(drawn.asked[row]), int(drawn.other[row])
        assert (asked > other) == asked_later
        assert base.query_line == asked + 1
        assert exchanged.query == base.query
        assert exchanged.query_line == other + 1
        assert base.references == renamed.references == exchanged.references
        assert renamed.values == exchanged.values == tuple(drawn.source_values[row])
        assert base.values == tuple(drawn.values[row])
        told = {*(base.values[line] for line in (asked, other)), *(renamed.values[line] for line in (asked, other))}
        assert len(told) == 4
        assert not told & set(base.values[:2])
        names = {base.assignments[line].variable for line in (asked, other)}
        assert not names & {renamed.assignments[line].variable for line in (asked, other)}
        assert names == {exchanged.assignments[line].variable for line in (asked, other)}


def test_columns_are_those_of_the_two_lines() -> None:
    drawn = sample_exchanges(BindingTask(), np.random.default_rng(0), 12)
    for part, at in (("name", 0), ("value", 2)):
        mine, other = drawn.columns(part)
        np.testing.assert_array_equal(mine[:, 0], 4 * drawn.asked + at)
        np.testing.assert_array_equal(other[:, 0], 4 * drawn.other + at)
    assert drawn.columns("line")[0].shape == (12, 4)


def test_programs_too_short_for_two_more_bindings_are_refused() -> None:
    with pytest.raises(BindscopeError, match="exchanges need programs of 4 lines and 6 constants"):
        sample_exchanges(BindingTask(lines=3), np.random.default_rng(0), 4)
