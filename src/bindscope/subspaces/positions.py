"""Where a subspace is looked for: named columns of many programs, and what stands in each.

Besides the positions of ``named_positions`` (``lhs k``, ``rhs k``, ``distractor``, ``query``, ``colon``) there are some
that are several columns of a program, read together and swapped together:

- ``rhs``      every right-hand side of the queried chain
- ``chain``    these, the query and the colon: all that the value passes through
- ``question`` the query and the colon
- ``changed``  the column in which base and counterfactual differ
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.tasks.binding import CounterfactualPairs, columns_of, named_positions, programs_of, rows_of
from bindscope.tasks.binding.positions import LINE_WIDTH, QUERY_WIDTH
from bindscope.tasks.binding.program import FIRST_LETTER, LETTERS
from bindscope.tasks.task import Batch

Quality = Literal["values", "names"]
QUALITIES: tuple[Quality, ...] = get_args(Quality)
N_CLASSES: dict[Quality, int] = {"values": 10, "names": len(LETTERS)}


def named_columns(pairs: CounterfactualPairs) -> dict[str, np.ndarray]:
    """Columns [pair, column] of every position by name, −1 where a pair has fewer.

    >>> sorted(named_columns(pairs))
    ['chain', 'changed', 'colon', 'distractor', 'lhs 1', 'lhs 2', 'query', 'question', 'rhs', 'rhs 1', 'rhs 2']
    """
    single = named_positions(pairs)
    ends = np.stack([single["query"], single["colon"]], axis=1)
    together = {
        "rhs": pairs.chain_positions,
        "chain": np.concatenate([pairs.chain_positions, ends], axis=1),
        "question": ends,
        "changed": pairs.changed_positions[:, None],
    }
    return {name: column[:, None] for name, column in single.items()} | together


def find_columns(pairs: CounterfactualPairs, position: str) -> np.ndarray:
    """The columns [pair, column] of one position; an unknown name is refused with those that exist."""
    known = named_columns(pairs)
    if position not in known:
        raise BindscopeError(f"position '{position}': unknown.{suggest_nearest(position, known)}")
    return known[position]


def label_columns(batch: Batch, columns: np.ndarray, of: Quality) -> np.ndarray:
    """What each column [program, column] stands for, −1 where there is no column.

    ``values``: the digit that the column's line assigns, or that the query asks for. ``names``: the letter that stands
    there; at any other token the variable that its line assigns, or that the query asks for.
    """
    if of not in QUALITIES:
        raise BindscopeError(f"'{of}': a subspace is looked for of {' or '.join(QUALITIES)}.")
    programs, queries = programs_of(batch)
    tokens = rows_of(batch)
    at = columns_of(batch)
    positions = np.searchsorted(at, np.clip(columns, at[0], at[-1]))  # [program, column]
    rows = np.arange(len(tokens))[:, None]
    in_query = positions >= tokens.shape[1] - QUERY_WIDTH
    line = np.where(in_query, queries, positions // LINE_WIDTH)  # [program, column]
    line = np.minimum(line, programs.n_lines - 1)
    if of == "values":
        labels = programs.value[rows, line].astype(np.int64)
    else:
        letter = np.take_along_axis(tokens, positions, axis=1) - FIRST_LETTER
        stands_there = (letter >= 0) & (letter < len(LETTERS))
        labels = np.where(stands_there, letter, programs.variables[rows, line])
    return np.where(columns < 0, -1, labels)
