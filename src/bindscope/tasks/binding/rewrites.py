"""Programs that assign a variable twice, beside counterfactuals that tell its writes apart.

Write pairs: both writes of one variable have other digits in the source, so that an answer says which write it came from.

    situation   base                          source                        patched in, the answer becomes
    query       … x=3 … x=7 …   #x:  → 7      … x=1 … x=9 …                 9: the last write's (1: the first one's)
    earlier     … x=3 x=7 y=x … #y:  → 7      … x=1 x=9 y=x …               9 (1)
    later       … x=3 y=x x=7 … #y:  → 3      … x=1 y=x x=9 …               1: the first write's (9: the last one's)

Overwrites: in the source the same line assigns a fresh variable, so that nothing is overwritten.

    constant    … x=3 … x=7 …   #x:  → 7      … x=3 … u=7 …   #x:  → 3
    copy        … x=3 … x=w …   #x:  → w's    … x=3 … u=w …   #x:  → 3

Both writes stand on line 3 or later, so that the constants of lines 1 and 2, which models answer with on the plateau, are
neither of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.accounts import (
    MOST_CANDIDATES,
    N_EARLY,
    ROUND,
    join_programs,
    may_be_shown,
    spread_digits,
    with_constants,
)
from bindscope.tasks.binding.pairs import CounterfactualPairs, draw_marked, pair_batches
from bindscope.tasks.binding.positions import LINE_PARTS, LINE_WIDTH, QUERY_PARTS
from bindscope.tasks.binding.program import FIRST_LETTER
from bindscope.tasks.binding.programs import Programs, ask_questions, tokens_to_programs
from bindscope.tasks.binding.rendered import columns_of
from bindscope.tasks.binding.sampler import sample_programs
from bindscope.tasks.binding.task import BindingTask

SITUATIONS = ("query", "earlier", "later")
OPERATIONS = ("constant", "copy")
WRITE_POSITIONS = ("first write", "last write", "reference", "query", "colon")
OPERATION_POSITIONS = ("name", "equals", "value", "line break", "line", "lines after", "query", "colon")
RIGHT = LINE_PARTS.index("rhs")
DEPTHS = range(1, 3)  # of write pairs
Choice = tuple[np.ndarray, np.ndarray]  # what a round found: lines [program, k] and whether they will do [program]


@dataclass(frozen=True, eq=False)
class WritePairs:
    """Pairs that differ in both writes of a variable; lines are counted from 0."""

    pairs: CounterfactualPairs
    lines: np.ndarray  # [pair, first write · last write · asked line]
    old: np.ndarray  # [pair, first · last]: the base's digits
    new: np.ndarray  # [pair, first · last]: the source's

    def __len__(self) -> int:
        return len(self.pairs)

    def marks(self) -> dict[str, np.ndarray]:
        """The columns [pair, column] of each of ``WRITE_POSITIONS``; none where a pair has no such position."""
        right = LINE_WIDTH * self.lines + RIGHT  # [pair, 3]
        refers = ~(self.lines[:, 2:] == self.lines[:, :2]).any(1)
        ends = end_positions(self.pairs)
        at = [right[:, 0], right[:, 1], np.where(refers, right[:, 2], -1), *ends[1:]]
        return {name: mark_positions(self.pairs, [each]) for name, each in zip(WRITE_POSITIONS, at)}


@dataclass(frozen=True, eq=False)
class OverwritePairs:
    """Pairs that differ in the name on one line: in the base it overwrites the asked variable, in the source it does not."""

    pairs: CounterfactualPairs
    lines: np.ndarray  # [pair, first write · overwriting line]

    def __len__(self) -> int:
        return len(self.pairs)

    def marks(self) -> dict[str, np.ndarray]:
        """The columns [pair, column] of each of ``OPERATION_POSITIONS``."""
        start = LINE_WIDTH * self.lines[:, 1]
        hash_, query, colon = end_positions(self.pairs)
        parts = [start + part for part in range(LINE_WIDTH)]
        after = [np.where(start + at < hash_, start + at, -1) for at in range(LINE_WIDTH, int(hash_[0]))]
        sets = (*([part] for part in parts), parts, after, [query], [colon])
        return {name: mark_positions(self.pairs, each) for name, each in zip(OPERATION_POSITIONS, sets)}


def sample_write_pairs(task: BindingTask, rng: np.random.Generator, n_pairs: int, situation: str) -> WritePairs:
    """Pairs of one of ``SITUATIONS``; the source's two digits stand nowhere in the base."""

    def choose(programs: Programs) -> Choice:
        return _choose_writes(rng, programs, situation)

    def change(programs: Programs, lines: np.ndarray) -> tuple[Programs, np.ndarray]:
        free = ~(programs.value[:, :, None] == np.arange(task.n_constants)).any(1)  # [program, digit]
        new = np.where(free, rng.random(free.shape), -1).argsort(1)[:, -2:]
        digits = programs.value.astype(np.int64)
        np.put_along_axis(digits, lines[:, :2], new, axis=1)
        return with_constants(programs, digits), free.sum(1) >= 2

    base, source, lines = _collect(task, rng, n_pairs, choose, change, f"write pairs ({situation})")
    rows = np.arange(n_pairs)[:, None]
    pairs = pair_batches(task, base, lines[:, 2:], ask_questions(source, lines[:, 2:]), DEPTHS)
    return WritePairs(pairs, lines, base.value[rows, lines[:, :2]], source.value[rows, lines[:, :2]])


def sample_overwrites(task: BindingTask, rng: np.random.Generator, n_pairs: int, operation: str) -> OverwritePairs:
    """Pairs whose overwriting line has one of ``OPERATIONS``; nothing but the query refers to it, and a line follows it."""

    def choose(programs: Programs) -> Choice:
        return _choose_overwrites(rng, programs, operation)

    def change(programs: Programs, lines: np.ndarray) -> tuple[Programs, np.ndarray]:
        rows = np.arange(len(programs))
        used = (programs.variables[:, :, None] == np.arange(task.n_variables)).any(1)  # [program, letter]
        fresh = draw_marked(rng, (~used).astype(float))
        tokens = ask_questions(programs, lines[:, 1:]).tokens.copy()
        tokens[rows, LINE_WIDTH * lines[:, 1]] = fresh + FIRST_LETTER
        return tokens_to_programs(tokens)[0], ~used.all(1)

    base, source, lines = _collect(task, rng, n_pairs, choose, change, f"overwrites ({operation})")
    pairs = pair_batches(task, base, lines[:, 1:], ask_questions(source, lines[:, :1]), range(1, task.max_depth + 1))
    return OverwritePairs(pairs, lines)


def end_positions(pairs: CounterfactualPairs) -> list[np.ndarray]:
    """The positions [pair] of hash, query and colon, counted as a program's own."""
    n = len(columns_of(pairs.base))
    return [np.full(len(pairs), n - len(QUERY_PARTS) + part) for part in range(len(QUERY_PARTS))]


def mark_positions(pairs: CounterfactualPairs, positions: list[np.ndarray]) -> np.ndarray:
    """Marks [pair, column] at each of ``positions`` [pair], −1 for none."""
    marks = np.zeros(pairs.base_tokens.shape, bool)
    columns, rows = columns_of(pairs.base), np.arange(len(pairs))
    for at in positions:
        marks[rows[at >= 0], columns[at[at >= 0]]] = True
    return marks


def _collect(
    task: BindingTask,
    rng: np.random.Generator,
    n_pairs: int,
    choose: Callable[[Programs], Choice],
    change: Callable[[Programs, np.ndarray], tuple[Programs, np.ndarray]],
    words: str,
) -> tuple[Programs, Programs, np.ndarray]:
    """Base programs, their sources and the chosen lines, from as many rounds of drawn programs as are needed.

    The last of the chosen lines is asked for in the base; the source asks for the same name.
    """
    found: list[tuple[Programs, Programs, np.ndarray]] = []
    n_found = n_drawn = 0
    while n_found < n_pairs:
        if n_drawn >= MOST_CANDIDATES:
            raise BindscopeError(f"{words}: only {n_found} of {n_pairs} were found among {n_drawn:,} programs of {task.lines} lines.")  # fmt: skip
        drawn = spread_digits(rng, task, sample_programs(rng, task.grammar, ROUND, task.lines))
        lines, will_do = choose(drawn)
        base, lines = drawn.take(will_do), lines[will_do]
        n_drawn += ROUND
        if not len(base):
            continue
        source, possible = change(base, lines)
        possible &= may_be_shown(task, base, lines[:, -1]) & may_be_shown(task, source, lines[:, 0])
        found.append((base.take(possible), source.take(possible), lines[possible]))
        n_found += int(possible.sum())
    bases, sources, chosen = zip(*found)
    base, source = (join_programs(each).take(slice(n_pairs)) for each in (bases, sources))
    return base, source, np.concatenate(chosen)[:n_pairs]


def _choose_writes(rng: np.random.Generator, programs: Programs, situation: str) -> Choice:
    """First write, last write and asked line of each program."""
    rows = np.arange(len(programs))
    partner, is_last, twice = _two_writes(programs)
    direct = twice & programs.is_constant & np.take_along_axis(programs.is_constant, partner, axis=1)
    if situation == "query":
        marked = direct & is_last
    else:
        wanted = direct & (is_last if situation == "earlier" else ~is_last)  # the write that is referred to
        once = (programs.variables[:, :, None] == programs.variables[:, None, :]).sum(2) == 1
        refers = np.take_along_axis(wanted, np.maximum(programs.reference, 0).astype(np.int64), axis=1)
        marked = refers & ~programs.is_constant & once
    asked = draw_marked(rng, marked.astype(float))
    write = asked if situation == "query" else np.maximum(programs.reference[rows, asked], 0).astype(np.int64)
    both = np.sort(np.stack([write, partner[rows, write]], 1), 1)
    differ = programs.value[rows, both[:, 0]] != programs.value[rows, both[:, 1]]
    return np.concatenate([both, asked[:, None]], 1), marked.any(1) & differ


def _choose_overwrites(rng: np.random.Generator, programs: Programs, operation: str) -> Choice:
    """First write and overwriting line of each program; the last line never overwrites."""
    rows, lines = np.arange(len(programs)), np.arange(programs.n_lines)
    partner, is_last, twice = _two_writes(programs)
    used = (programs.reference[:, :, None] == lines).any(1)  # [program, line]: some line refers to it
    marked = twice & is_last & np.take_along_axis(programs.is_constant, partner, axis=1) & ~used
    marked &= (programs.is_constant == (operation == "constant")) & (lines < programs.n_lines - 1)
    line = draw_marked(rng, marked.astype(float))
    first = partner[rows, line]
    differ = programs.value[rows, line] != programs.value[rows, first]
    return np.stack([first, line], 1), marked.any(1) & differ


def _two_writes(programs: Programs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each line [program, line]: the variable's other write, whether the line is the last of both, and whether the
    variable has two writes, both behind the early lines.
    """
    lines = np.arange(programs.n_lines)
    same = programs.variables[:, :, None] == programs.variables[:, None, :]
    partner = (same & (lines[:, None] != lines)).argmax(2)
    twice = (same.sum(2) == 2) & (np.minimum(lines, partner) >= N_EARLY)
    return partner, partner < lines, twice
