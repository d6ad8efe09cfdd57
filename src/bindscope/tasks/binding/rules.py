"""What shortcuts would answer, and other labels of a question.

Each rule predicts a digit from a program and the queried variable, −1 where it says nothing:

- ``rule_line_1``          the constant on line 1;
- ``rule_line_2``          the constant on line 2, if it has one;
- ``rule_first_constant``  the first constant of the program: line 1's, since a program has to start with a constant;
- ``rule_most_recent``     the last constant of the program;
- ``rule_positional``      the constant nearest to the query variable's own line, on it or before it: right at depth 1,
                           deeper it looks at the position instead of following the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bindscope.tasks.binding.positions import LINE_WIDTH
from bindscope.tasks.binding.program import FIRST_LETTER

if TYPE_CHECKING:
    from bindscope.tasks.binding.programs import Programs

RULES = ("rule_line_1", "rule_line_2", "rule_first_constant", "rule_most_recent", "rule_positional")


def label_questions(programs: Programs, queries: np.ndarray) -> dict[str, np.ndarray]:
    """Labels [program, query] of the queried lines.

    ``depth``; ``root_line`` counted from 1; ``n_chains``: how many chains the program starts, that is its constants;
    ``lines``; and one column for each of ``RULES``.
    """
    rows = np.arange(len(programs))[:, None]
    latest = latest_constant_lines(programs)
    line_1 = programs.value[:, 0]
    by_program = {
        "n_chains": programs.is_constant.sum(1),
        "lines": np.full(len(programs), programs.n_lines),
        "rule_line_1": line_1,
        "rule_line_2": _constant_on_line(programs, 1),
        "rule_first_constant": line_1,
        "rule_most_recent": programs.value[rows[:, 0], latest[:, -1]],
    }
    by_query = {
        "depth": programs.depth[rows, queries],
        "root_line": programs.root[rows, queries] + 1,
        "rule_positional": programs.value[rows, latest[rows, queries]],
    }
    spread = {name: np.repeat(values[:, None], queries.shape[1], axis=1) for name, values in by_program.items()}
    return {name: values.astype(np.int64) for name, values in (spread | by_query).items()}


def latest_constant_lines(programs: Programs) -> np.ndarray:
    """For each line [program, line] the last line with a constant, on it or before it."""
    lines = np.arange(programs.n_lines, dtype=np.int8)
    return np.maximum.accumulate(np.where(programs.is_constant, lines, np.int8(0)), axis=1)


def nearest_constants(programs: Programs) -> np.ndarray:
    """For each line [program, line] the last constant assigned on it or before it."""
    return np.take_along_axis(programs.value, latest_constant_lines(programs), axis=1)


def constants_by_line(tokens: np.ndarray, n_lines: int) -> np.ndarray:
    """The digit on each line [batch, line], −1 where a line refers to a variable.

    A prediction comes from the lines whose constant equals it:

    >>> prediction[:, None] == constants_by_line(batch.tokens, n_lines=16)
    """
    source = tokens[:, 2 : LINE_WIDTH * n_lines : LINE_WIDTH]
    return np.where(source < FIRST_LETTER, source, -1).astype(np.int64)


def _constant_on_line(programs: Programs, line: int) -> np.ndarray:
    if line >= programs.n_lines:
        return np.full(len(programs), -1)
    return np.where(programs.is_constant[:, line], programs.value[:, line], -1)
