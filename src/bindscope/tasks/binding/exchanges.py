"""Exchange programs: two direct bindings of one program, and sources from which their names or values can be taken.

    base        p=5  q=1  x=3  r=7  y=9   #x:  → 3    the bindings of x and y; exchanged, the answer is 9
    renamed     k=2  m=8  a=6  n=0  b=4   #a:         other names and other digits on every line
    exchanged   p=2  q=8  y=6  r=0  x=4   #y:         the base's names with x and y exchanged, and the other digits

If names and values carry identifiers of their line and nothing of each other (arXiv 2310.17191), a value taken from ``renamed``
answers for the base's name on that line, and names taken from ``exchanged`` answer with each other's value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.accounts import (
    MOST_CANDIDATES,
    N_EARLY,
    ROUND,
    join_programs,
    may_be_shown,
    rename_letters,
    spread_digits,
    with_constants,
)
from bindscope.tasks.binding.pairs import draw_marked
from bindscope.tasks.binding.positions import LINE_WIDTH
from bindscope.tasks.binding.programs import Programs
from bindscope.tasks.binding.rendered import columns_of
from bindscope.tasks.binding.sampler import sample_programs
from bindscope.tasks.binding.task import BindingTask
from bindscope.tasks.task import Batch

LEAST_LINES = N_EARLY + 2
PART_COLUMNS: dict[str, list[int]] = {"name": [0], "value": [2], "line": list(range(LINE_WIDTH))}


@dataclass(frozen=True, eq=False)
class ExchangePrograms:
    """Programs that ask for the variable of line ``asked``; everything by row [program], lines counted from 0."""

    base: Batch
    renamed: Batch
    exchanged: Batch
    asked: np.ndarray
    other: np.ndarray
    values: np.ndarray  # [program, line]: the base's digits
    source_values: np.ndarray  # [program, line]: those of both sources

    def __len__(self) -> int:
        return len(self.asked)

    def columns(self, part: str) -> tuple[np.ndarray, np.ndarray]:
        """The columns [program, k] of one part of the two lines, asked and other: 'name', 'value' or the whole 'line'."""
        at = columns_of(self.base)
        mine, other = (at[LINE_WIDTH * lines[:, None] + PART_COLUMNS[part]] for lines in (self.asked, self.other))
        return mine, other


def sample_exchanges(task: BindingTask, rng: np.random.Generator, n: int, asked_later: bool = True) -> ExchangePrograms:
    """Programs of the task with two constants from line 3 on, all four digits and those of the early lines different.

    The asked line comes after the other, or before it.
    """
    if task.lines < LEAST_LINES or task.n_constants < 6:
        raise BindscopeError(
            f"exchanges need programs of {LEAST_LINES} lines and 6 constants; these have {task.lines} and {task.n_constants}."
        )
    found: list[tuple[Programs, Programs, Programs, np.ndarray]] = []
    n_found = n_drawn = 0
    while n_found < n:
        if n_drawn >= MOST_CANDIDATES:
            raise BindscopeError(f"exchanges: only {n_found} of {n} were found among {n_drawn:,} programs.")
        drawn = spread_digits(rng, task, sample_programs(rng, task.grammar, ROUND, task.lines))
        lines, possible = _draw_lines(rng, drawn, asked_later)
        drawn, lines = drawn.take(possible), lines[possible]
        others, swapped, told = _write_sources(rng, task, drawn, lines)
        for side, at in ((drawn, 0), (others, 0), (swapped, 1)):
            told &= may_be_shown(task, side, lines[:, at])
        found.append((drawn.take(told), others.take(told), swapped.take(told), lines[told]))
        n_found, n_drawn = n_found + int(told.sum()), n_drawn + ROUND
    sides = [join_programs(tuple(part[side] for part in found)).take(slice(n)) for side in range(3)]  # type: ignore[misc]
    lines = np.concatenate([part[3] for part in found])[:n]
    base, renamed, exchanged = (task.ask(side, lines[:, at : at + 1]) for side, at in zip(sides, (0, 0, 1)))
    return ExchangePrograms(base, renamed, exchanged, lines[:, 0], lines[:, 1], sides[0].value, sides[1].value)


def _draw_lines(rng: np.random.Generator, programs: Programs, asked_later: bool) -> tuple[np.ndarray, np.ndarray]:
    """An asked line and another [program, 2], and whether their digits tell them and the early lines apart [program]."""
    rows = np.arange(len(programs))
    direct = programs.is_constant & programs.live & (np.arange(programs.n_lines) >= N_EARLY)
    lines = np.stack([draw_marked(rng, direct.astype(float)) for _ in range(2)], 1)
    lines = np.sort(lines, 1)[:, ::-1] if asked_later else np.sort(lines, 1)
    held, early = programs.value[rows[:, None], lines], programs.value[:, :N_EARLY]
    told = (held[:, 0] != held[:, 1]) & ~(held[:, :, None] == early[:, None, :]).any((1, 2))
    return lines, told & direct.any(1)


def _write_sources(
    rng: np.random.Generator, task: BindingTask, base: Programs, lines: np.ndarray
) -> tuple[Programs, Programs, np.ndarray]:
    """Both sources, and whether they tell themselves apart from the base [program]."""
    rows = np.arange(len(base))
    names = base.variables[rows[:, None], lines]  # [program, asked and other]
    letters = rng.random((len(base), task.n_variables)).argsort(1)
    swap = np.tile(np.arange(task.n_variables), (len(base), 1))
    swap[rows, names[:, 0]], swap[rows, names[:, 1]] = names[:, 1], names[:, 0]
    digits = rng.random((len(base), task.n_constants)).argsort(1)  # [program, digit] → its new digit
    changed = np.take_along_axis(digits, base.value.astype(np.int64), axis=1)  # [program, line]
    renamed, exchanged = (with_constants(rename_letters(base, each), changed) for each in (letters, swap))
    new, old = (
        changed[rows[:, None], lines],
        base.value[rows[:, None], np.concatenate([lines, lines * 0, lines * 0 + 1], 1)],
    )
    fresh = renamed.variables[rows[:, None], lines]
    told = ~(new[:, :, None] == old[:, None, :]).any((1, 2)) & ~(fresh[:, :, None] == names[:, None, :]).any((1, 2))
    return renamed, exchanged, told
