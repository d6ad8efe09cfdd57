"""Where the parts of a binding program stand among its tokens, and back.

tokens     a = 5 \\n  b = a \\n  #  b :
positions  0 1 2 3   4 5 6 7   8  9 10
parts      lhs equals rhs newline (line 1) …  hash query colon

>>> position_of(NamedPosition("rhs", 2), n_lines=2), name_at(6, n_lines=2)
(6, NamedPosition(part='rhs', line=2))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.program import Program

LinePart = Literal["lhs", "equals", "rhs", "newline"]
QueryPart = Literal["hash", "query", "colon"]
LINE_PARTS: tuple[str, ...] = get_args(LinePart)
QUERY_PARTS: tuple[str, ...] = get_args(QueryPart)
LINE_WIDTH = len(LINE_PARTS)
QUERY_WIDTH = len(QUERY_PARTS)


@dataclass(frozen=True)
class NamedPosition:
    """A part of one line (counted from 1), or of the query when ``line`` is None."""

    part: LinePart | QueryPart
    line: int | None = None

    def __str__(self) -> str:
        return self.part if self.line is None else f"{self.part} of line {self.line}"


def position_of(position: NamedPosition, n_lines: int) -> int:
    """The token position of a named position in a program of ``n_lines`` assignments."""
    if position.line is None and position.part in QUERY_PARTS:
        return LINE_WIDTH * n_lines + QUERY_PARTS.index(position.part)
    if position.line is not None and position.part in LINE_PARTS and 1 <= position.line <= n_lines:
        return LINE_WIDTH * (position.line - 1) + LINE_PARTS.index(position.part)
    raise BindscopeError(f"a program of {n_lines} lines has no position '{position}'.")


def name_at(position: int, n_lines: int) -> NamedPosition:
    """The name of a token position; with shared prefixes pass the position id, not the column."""
    if not 0 <= position < n_positions(n_lines):
        raise BindscopeError(
            f"position {position}: a program of {n_lines} lines has positions 0 to {n_positions(n_lines) - 1}."
        )
    line, part = divmod(position, LINE_WIDTH)
    if line < n_lines:
        return NamedPosition(LINE_PARTS[part], line + 1)  # type: ignore[arg-type]
    return NamedPosition(QUERY_PARTS[position - LINE_WIDTH * n_lines])  # type: ignore[arg-type]


def n_positions(n_lines: int) -> int:
    """How many tokens a program of ``n_lines`` assignments and its query take."""
    return LINE_WIDTH * n_lines + QUERY_WIDTH


def chain_names(program: Program) -> tuple[NamedPosition, ...]:
    """The right-hand sides of the queried chain from its root on, then the query and the colon: the value's way."""
    sources = (NamedPosition("rhs", line) for line in reversed(program.chain))
    return (*sources, NamedPosition("query"), NamedPosition("colon"))


def chain_positions(program: Program) -> tuple[int, ...]:
    """Token positions of ``chain_names``.

    >>> chain_positions(parse_program("a=5\\nb=a\\n#b:"))
    (2, 6, 9, 10)
    """
    return tuple(position_of(position, program.n_lines) for position in chain_names(program))
