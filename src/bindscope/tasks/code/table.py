"""The tokens of a surface form: all of a tokenizer that a task needs, so that a run needs no tokenizer.

Every name and value is one token, and what stands between them is always the same tokens. A program of n lines then has its
parts at the same columns whatever it says, and a table of a few hundred numbers writes and reads all programs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.positions import LINE_WIDTH, QUERY_WIDTH
from bindscope.tasks.binding.program import COLON, EQUALS, FIRST_LETTER, HASH, NEWLINE

Tokens = tuple[int, ...]
FIXED = ("start", "equals", "newline", "end", "hash", "colon", "separator")
OF_NAMES = ("first", "again", "lhs", "rhs_names", "query")
OF_VALUES = ("rhs_values", "answers")


@dataclass(frozen=True)
class TokenTable:
    """Token numbers of the pieces of text between names and values, and of each name and value where it stands."""

    size: int = 256  # of the model's vocabulary
    sha256: str = ""  # of the file that the tokenizer was read from; empty where tokens are bytes
    start: Tokens = ()  # before the first name, what the tokenizer puts before every text included
    equals: Tokens = ()
    newline: Tokens = ()  # from the right of a line to the name on the next
    end: Tokens = ()  # of the last line
    hash: Tokens = ()
    colon: Tokens = ()
    separator: Tokens = ()  # from an answer to the first name of the next program
    first: Tokens = ()  # by name: at the beginning of the text
    again: Tokens = ()  # by name: at the beginning of a further program
    lhs: Tokens = ()  # by name
    rhs_names: Tokens = ()
    query: Tokens = ()
    rhs_values: Tokens = ()  # by value
    answers: Tokens = ()
    texts: tuple[tuple[int, str], ...] = ()  # what the tokens of this table spell

    def __post_init__(self) -> None:
        known = [token for name in (*FIXED, *OF_NAMES, *OF_VALUES) for token in getattr(self, name)]
        if any(not 0 <= token < self.size for token in known):
            raise BindscopeError(
                f"task.tokens: has tokens outside a vocabulary of {self.size}; import the model again."
            )

    def check(self, n_names: int, n_values: int) -> None:
        """Refuse a table that was made for other names or values."""
        lengths = {name: n_names for name in OF_NAMES} | {name: n_values for name in OF_VALUES}
        for field in fields(self):
            needed = lengths.get(field.name)
            if needed is not None and len(getattr(self, field.name)) != needed:
                raise BindscopeError(
                    f"task.tokens.{field.name}: has {len(getattr(self, field.name))} tokens for {needed} words; form, names and "
                    "values are chosen when a model is imported."
                )


@dataclass(frozen=True, eq=False)
class TextRendering:
    """Rows of programs as tokens of text, behind the same ``prefix`` each, and back (see ``tasks.task.Rendering``)."""

    table: TokenTable
    prefix: Tokens  # all before the first name
    begins_text: bool  # whether the first name begins the text

    @property
    def output_of_digit(self) -> np.ndarray:
        return np.array(self.table.answers)

    def columns(self, n_positions: int) -> np.ndarray:
        """The last token's column of each position's span."""
        n_lines = (n_positions - QUERY_WIDTH) // LINE_WIDTH
        return len(self.prefix) + self._spans(n_lines).cumsum() - 1

    def write_rows(self, rows: np.ndarray) -> np.ndarray:
        """Tokens [batch, column] of rows of programs [batch, position]."""
        table, columns = self.table, self.columns(rows.shape[1])
        n_prefix = rows.shape[1] - QUERY_WIDTH
        tokens = np.empty((len(rows), columns[-1] + 1), np.int64)
        tokens[:] = self._fixed(n_prefix // LINE_WIDTH)
        sources = np.full(FIRST_LETTER + len(table.lhs), -1)
        sources[: len(table.rhs_values)] = table.rhs_values
        sources[FIRST_LETTER:] = table.rhs_names
        names = rows[:, :n_prefix:LINE_WIDTH] - FIRST_LETTER  # [batch, line]
        tokens[:, columns[:n_prefix:LINE_WIDTH]] = np.array(table.lhs)[names]
        tokens[:, columns[0]] = np.array(self._first)[names[:, 0]]
        tokens[:, columns[2:n_prefix:LINE_WIDTH]] = sources[rows[:, 2:n_prefix:LINE_WIDTH]]
        tokens[:, columns[-2]] = np.array(table.query)[rows[:, -2] - FIRST_LETTER]
        return tokens

    def read_rows(self, tokens: np.ndarray) -> np.ndarray:
        columns = self.columns(LINE_WIDTH * self._count_lines(tokens.shape[1]) + QUERY_WIDTH)
        rows = np.empty((len(tokens), len(columns)), np.int64)
        n_prefix = len(columns) - QUERY_WIDTH
        for at, sign in zip((1, 3), (EQUALS, NEWLINE)):
            rows[:, at:n_prefix:LINE_WIDTH] = sign
        rows[:, -3], rows[:, -1] = HASH, COLON
        lookups = self._lookups
        rows[:, 0] = lookups["first"][tokens[:, columns[0]]]
        rows[:, LINE_WIDTH:n_prefix:LINE_WIDTH] = lookups["lhs"][tokens[:, columns[LINE_WIDTH:n_prefix:LINE_WIDTH]]]
        rows[:, 2:n_prefix:LINE_WIDTH] = lookups["rhs"][tokens[:, columns[2:n_prefix:LINE_WIDTH]]]
        rows[:, -2] = lookups["query"][tokens[:, columns[-2]]]
        if (rows < 0).any():
            raise BindscopeError(f"row {int((rows < 0).any(1).argmax())} is not a program in this task's surface form.")
        return rows

    @property
    def _first(self) -> Tokens:
        return self.table.first if self.begins_text else self.table.again

    @cached_property
    def _lookups(self) -> dict[str, np.ndarray]:
        """The program's own token for each token of the model, by where it stands; −1 for any other."""
        found = {}
        by_name = {"first": self._first, "lhs": self.table.lhs, "rhs": self.table.rhs_names, "query": self.table.query}
        for name, tokens in by_name.items():
            found[name] = np.full(self.table.size, -1)
            found[name][list(tokens)] = np.arange(len(tokens)) + FIRST_LETTER
        found["rhs"][list(self.table.rhs_values)] = np.arange(len(self.table.rhs_values))
        return found

    def _spans(self, n_lines: int) -> np.ndarray:
        """How many tokens each position of a program has."""
        table = self.table
        line = [1, len(table.equals), 1, len(table.newline)]
        spans = np.array([*line * n_lines, len(table.hash), 1, len(table.colon)])
        spans[LINE_WIDTH * n_lines - 1] = len(table.end)
        return spans

    def _fixed(self, n_lines: int) -> np.ndarray:
        """The tokens of any program of ``n_lines`` lines, 0 where names and values stand."""
        table = self.table
        between = [0, *table.equals, 0, *table.newline]
        last = [0, *table.equals, 0, *table.end]
        query = [*table.hash, 0, *table.colon]
        return np.array([*self.prefix, *between * (n_lines - 1), *last, *query])

    def _count_lines(self, n_tokens: int) -> int:
        one, two = (int(self._spans(n_lines).sum()) for n_lines in (1, 2))
        n_lines, rest = divmod(n_tokens - len(self.prefix) - one, two - one)
        if rest or n_lines < 0:
            raise BindscopeError(f"rows of {n_tokens} tokens are not programs in this task's surface form.")
        return n_lines + 1
