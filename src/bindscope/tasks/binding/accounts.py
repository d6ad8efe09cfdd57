"""Account pairs: two programs of one layout on which each account of a lookup names another line, and so another digit.

    line      1    2    3    4    5    6    7
    base     a=5  b=1  c=3  d=7  e=9  f=2  g=4   #d:  → 7
    source   w=5  x=1  f=9  y=8  z=0  c=6  v=3   #f:  → 9

Put activations of the source's query into the base run. What does the base run look up?

    positional   the line that holds the source's binding: line 3, so 3
    lexical      the line that assigns the source's name: f is on line 6, so 2
    reflexive    the source's value itself, which the base holds on line 5: 9
    early        the constants of lines 1 and 2, which are the same in both programs: 5 or 1
    unchanged    the base's own answer: 7

(``Accounts`` and the names are those of arXiv 2510.06182; the early lines are this lab's.) Both programs have the same
structure, which line refers to which, with other letters and digits, so that a queried line is as deep in both.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.pairs import CounterfactualPairs, draw_marked, pair_batches
from bindscope.tasks.binding.program import FIRST_LETTER
from bindscope.tasks.binding.programs import Programs, ask_questions
from bindscope.tasks.binding.sampler import sample_programs
from bindscope.tasks.binding.task import BindingTask

N_EARLY = 2  # lines of the heuristic
ROUND = 2048  # programs drawn at a time
MOST_CANDIDATES = 400_000
ROLES = ("positional", "lexical", "reflexive", "asked")


@dataclass(frozen=True, eq=False)
class AccountPairs:
    """Pairs with the base's line, counted from 0, that each account names [pair], and what all its lines hold."""

    pairs: CounterfactualPairs
    positional: np.ndarray
    lexical: np.ndarray
    reflexive: np.ndarray  # −1 where no line of the base holds the source's value
    asked: np.ndarray  # the base's own queried line
    values: np.ndarray  # [pair, line]: the digit of each line of the base
    n_digits: int

    def __len__(self) -> int:
        return len(self.pairs)


def sample_account_pairs(
    task: BindingTask,
    rng: np.random.Generator,
    n_pairs: int,
    depth: int = 1,
    n_lines: int | None = None,
    absent: bool = False,
) -> AccountPairs:
    """Pairs whose source asks at ``depth``; the base's lines of its position and name are as deep, its own at most.

    ``absent``: the source's value is a digit that no line of the base holds.
    """
    n_lines = n_lines or task.lines
    _check_request(task, n_lines, depth)
    parts: list[tuple[Programs, Programs, np.ndarray]] = []
    found = n_drawn = 0
    while found < n_pairs:
        if n_drawn >= MOST_CANDIDATES:
            raise BindscopeError(
                f"account pairs: only {found} of {n_pairs} pairs of depth {depth} were found among {n_drawn:,} programs of "
                f"{n_lines} lines; ask for a smaller depth."
            )
        base = spread_digits(rng, task, sample_programs(rng, task.grammar, ROUND, n_lines))
        roles = _draw_roles(rng, base, depth)
        base, roles = base.take(roles[:, 0] >= 0), roles[roles[:, 0] >= 0]
        given, possible = _given_digits(rng, task, base, roles, absent)
        base, roles, given = base.take(possible), roles[possible], given[possible]
        source = _write_sources(rng, task, base, roles, given)
        shown = may_be_shown(task, base, roles[:, 3]) & may_be_shown(task, source, roles[:, 0])
        parts.append((base.take(shown), source.take(shown), roles[shown]))
        found, n_drawn = found + int(shown.sum()), n_drawn + ROUND
    bases, sources, lines = zip(*parts)
    base, source = (join_programs(each).take(slice(n_pairs)) for each in (bases, sources))
    roles = np.concatenate(lines)[:n_pairs]
    positional, lexical, reflexive, asked = roles.T
    reflexive = np.full_like(reflexive, -1) if absent else reflexive
    asks = ask_questions(source, positional[:, None])
    pairs = pair_batches(task, base, asked[:, None], asks, range(1, depth + 1))
    return AccountPairs(pairs, positional, lexical, reflexive, asked, base.value, task.n_constants)


def _check_request(task: BindingTask, n_lines: int, depth: int) -> None:
    if not 1 <= depth <= task.max_depth:
        raise BindscopeError(f"account pairs: depth must lie between 1 and {task.max_depth}, got {depth}.")
    needed = N_EARLY + len(ROLES)
    if task.n_constants < needed or n_lines < needed:
        raise BindscopeError(
            f"account pairs: {needed} lines with {needed} digits are needed to tell the accounts apart; the programs have "
            f"{n_lines} lines and {task.n_constants} constants."
        )


def spread_digits(rng: np.random.Generator, task: BindingTask, programs: Programs) -> Programs:
    """The same programs with digits that differ from constant to constant, as far as there are enough."""
    order = rng.random((len(programs), task.n_constants)).argsort(1)  # [program, rank]
    rank = (programs.is_constant.cumsum(1) - 1) % task.n_constants
    return with_constants(programs, np.take_along_axis(order, rank, axis=1))


def with_constants(programs: Programs, digits: np.ndarray) -> Programs:
    """The same programs with these digits [program, line] where a line has a constant."""
    source = np.where(programs.is_constant, digits, programs.source).astype(np.int8)
    values = np.take_along_axis(digits, programs.root.astype(np.int64), axis=1).astype(np.int8)
    return replace(programs, source=source, value=values)


def _draw_roles(rng: np.random.Generator, programs: Programs, depth: int) -> np.ndarray:
    """Lines [program, role] for each of ``ROLES``, −1 where those drawn do not tell all accounts apart."""
    rows = np.arange(len(programs))
    late = (programs.root >= N_EARLY) & programs.live
    deep = late & (programs.depth == depth)
    marks = (deep, deep, late & programs.is_constant, late & (programs.depth <= depth))
    possible = np.all([mark.any(1) for mark in marks], axis=0)
    roles = np.stack([draw_marked(rng, mark.astype(float)) for mark in marks], 1)
    held = programs.value[rows[:, None], np.concatenate([roles, np.tile(np.arange(N_EARLY), (len(rows), 1))], 1)]
    same = held[:, :, None] == held[:, None, :]  # [program, role or early line, …]
    same &= ~np.eye(held.shape[1], dtype=bool)
    same[:, -N_EARLY:, -N_EARLY:] = False  # line 2 may refer to line 1
    told = possible & ~same.any((1, 2))
    return np.where(told[:, None], roles, -1)


def _given_digits(
    rng: np.random.Generator, task: BindingTask, base: Programs, roles: np.ndarray, absent: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The digit that the source answers [program], and whether there is one [program]."""
    if not absent:
        return base.value[np.arange(len(base)), roles[:, 2]], np.ones(len(base), bool)
    free = ~(base.value[:, :, None] == np.arange(task.n_constants)).any(1)  # [program, digit]
    return draw_marked(rng, free.astype(float)), free.any(1)


def _write_sources(
    rng: np.random.Generator, task: BindingTask, base: Programs, roles: np.ndarray, given: np.ndarray
) -> Programs:
    """Programs of the bases' structure: other letters, the lexical line's on the positional line, and other digits."""
    rows, (positional, lexical, _, _) = np.arange(len(base)), roles.T
    letters = rng.random((len(base), task.n_variables)).argsort(1)  # [program, letter] → its new letter
    old, wanted = base.variables[rows, positional], base.variables[rows, lexical]
    holder = (letters == wanted[:, None]).argmax(1)
    letters[rows, holder], letters[rows, old] = letters[rows, old], wanted
    renamed = rename_letters(base, letters)
    return with_constants(renamed, _source_digits(rng, task, base, base.root[rows, positional], given))


def rename_letters(programs: Programs, letters: np.ndarray) -> Programs:
    """The same programs with other letters: ``letters`` [program, letter] gives each its new one."""
    variables = np.take_along_axis(letters, programs.variables.astype(np.int64), axis=1)
    referred = np.take_along_axis(variables, np.maximum(programs.reference, 0).astype(np.int64), axis=1)
    source = np.where(programs.is_constant, programs.source, referred + FIRST_LETTER)
    return replace(programs, variables=variables.astype(np.int8), source=source.astype(np.int8))


def _source_digits(
    rng: np.random.Generator, task: BindingTask, base: Programs, root: np.ndarray, given: np.ndarray
) -> np.ndarray:
    """Digits [program, line]: the base's on the early lines, ``given`` at ``root``, and others elsewhere."""
    rows, early = np.arange(len(base)), base.value[:, :N_EARLY]
    free = rng.random((len(base), task.n_constants))
    free[rows[:, None], early] += 1  # those that are taken come last
    free[rows, given] += 1
    order = free.argsort(1)
    n_free = task.n_constants - 1 - np.where(early[:, 0] == early[:, 1], 1, 2)  # [program]
    rank = np.maximum(base.is_constant.cumsum(1) - 1, 0) % n_free[:, None]
    digits = np.take_along_axis(order, rank, axis=1)
    digits[:, :N_EARLY] = early
    digits[rows, root] = given
    return digits


def may_be_shown(task: BindingTask, programs: Programs, asked: np.ndarray) -> np.ndarray:
    """Programs [program] without a held-out combination, neither assigned nor asked for."""
    shown = ~task.held_out_combinations[programs.variables, programs.value]  # [program, line]
    assigned: np.ndarray = (shown | ~programs.is_constant).all(1)
    return assigned & shown[np.arange(len(programs)), asked]


def join_programs(parts: tuple[Programs, ...]) -> Programs:
    return Programs(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Programs)))
