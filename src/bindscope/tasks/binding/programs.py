"""Many binding programs of one length as a struct of arrays, their tokens, and batches of questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.positions import LINE_WIDTH, QUERY_WIDTH
from bindscope.tasks.binding.program import COLON, EQUALS, FIRST_LETTER, HASH, LETTERS, NEWLINE, Assignment, Program
from bindscope.tasks.binding.rules import label_questions
from bindscope.tasks.task import Batch, Layout


@dataclass(frozen=True, eq=False)
class Programs:
    """Programs of equal length; every array is [program, line], int8 or bool, and line indices count from 0."""

    variables: np.ndarray  # which letter the line assigns: 0 = a
    reference: np.ndarray  # the line whose value is taken, −1 for a constant
    source: np.ndarray  # the token right of '='
    value: np.ndarray  # the digit that the line assigns
    depth: np.ndarray  # assignments on the chain from this line to its root, 1 for a constant
    root: np.ndarray  # the line with the constant
    is_constant: np.ndarray  # bool
    live: np.ndarray  # bool: no later line assigns the variable again, so it can be queried

    def __len__(self) -> int:
        return len(self.variables)

    @property
    def n_lines(self) -> int:
        return self.variables.shape[1]

    def take(self, rows: np.ndarray | slice) -> Programs:
        """Only these programs."""
        return Programs(*(getattr(self, field.name)[rows] for field in fields(self)))

    def program(self, row: int, line: int) -> Program:
        """Program ``row`` queried about the variable of the line with index ``line``."""
        names = [LETTERS[variable] for variable in self.variables[row]]
        sources = [LETTERS[token - FIRST_LETTER] if token >= FIRST_LETTER else str(token) for token in self.source[row]]
        return Program(tuple(Assignment(name, source) for name, source in zip(names, sources)), names[line])


def ask_questions(programs: Programs, queries: np.ndarray) -> Batch:
    """A batch that asks about the variables of the lines ``queries`` [program, query].

    One query a program is an ordinary sequence; several share the program as their prefix, one block each.
    """
    rows = np.arange(len(programs))[:, None]
    n_prefix, n_queries = LINE_WIDTH * programs.n_lines, queries.shape[1]
    tokens = np.empty((len(programs), n_prefix + QUERY_WIDTH * n_queries), np.int64)  # [batch, position]
    tokens[:, 0:n_prefix:LINE_WIDTH] = programs.variables + FIRST_LETTER
    tokens[:, 1:n_prefix:LINE_WIDTH] = EQUALS
    tokens[:, 2:n_prefix:LINE_WIDTH] = programs.source
    tokens[:, 3:n_prefix:LINE_WIDTH] = NEWLINE
    tokens[:, n_prefix::QUERY_WIDTH] = HASH
    tokens[:, n_prefix + 1 :: QUERY_WIDTH] = programs.variables[rows, queries] + FIRST_LETTER
    tokens[:, n_prefix + 2 :: QUERY_WIDTH] = COLON
    return Batch(
        tokens=tokens,
        layout=question_layout(programs.n_lines, n_queries),
        target_positions=np.arange(n_prefix + 2, tokens.shape[1], QUERY_WIDTH),
        targets=programs.value[rows, queries].astype(np.int64),
        labels=label_questions(programs, queries),
    )


def question_layout(n_lines: int, n_queries: int) -> Layout:
    """Position ids and blocks of a program followed by ``n_queries`` query blocks."""
    n_prefix = LINE_WIDTH * n_lines
    in_block = np.tile(np.arange(n_prefix, n_prefix + QUERY_WIDTH), n_queries)
    position_ids = np.concatenate([np.arange(n_prefix), in_block])
    if n_queries == 1:
        return Layout(position_ids)
    blocks = np.repeat(np.arange(1, n_queries + 1), QUERY_WIDTH)
    return Layout(position_ids, np.concatenate([np.zeros(n_prefix, np.int64), blocks]))


def ask_programs(programs: Sequence[Program]) -> Batch:
    """A batch of parsed programs, all of one length, with one answer each."""
    if not programs:
        raise BindscopeError("no program was given.")
    if len({program.n_lines for program in programs}) > 1:
        raise BindscopeError("programs of different lengths do not fit in one batch; ask them length by length.")
    tokens = np.array([program.tokens for program in programs])  # [batch, position]
    return ask_questions(*tokens_to_programs(tokens))


def tokens_to_programs(tokens: np.ndarray, n_queries: int = 1) -> tuple[Programs, np.ndarray]:
    """Programs and queried lines [program, query] back from the token rows of ``ask_questions``."""
    n_prefix = tokens.shape[1] - QUERY_WIDTH * n_queries
    if n_prefix < LINE_WIDTH or n_prefix % LINE_WIDTH:
        raise BindscopeError(f"rows of {tokens.shape[1]} tokens are not programs with {n_queries} queries.")
    tokens = tokens.astype(np.int64)
    variables = tokens[:, 0:n_prefix:LINE_WIDTH] - FIRST_LETTER  # [program, line]
    source = tokens[:, 2:n_prefix:LINE_WIDTH]
    reference, latest = _trace_references(variables, source)
    queries = np.take_along_axis(latest, tokens[:, n_prefix + 1 :: QUERY_WIDTH] - FIRST_LETTER, axis=1)
    is_constant = source < FIRST_LETTER
    broken = ((reference < 0) & ~is_constant).any(1) | (queries < 0).any(1)
    if broken.any():
        raise BindscopeError(f"row {int(broken.argmax())} is not a binding program: it uses an unassigned variable.")
    depth, root = _trace_chains(reference)
    value = np.take_along_axis(source, root, axis=1)
    live = np.take_along_axis(latest, variables, axis=1) == np.arange(variables.shape[1])
    numbers = {"variables": variables, "reference": reference, "source": source, "value": value, "depth": depth}
    small = {name: array.astype(np.int8) for name, array in (numbers | {"root": root}).items()}
    return Programs(**small, is_constant=is_constant, live=live), queries


def _trace_references(variables: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The line each line refers to, −1 where there is none, and the last line to assign each letter."""
    rows = np.arange(len(variables))
    latest = np.full((len(variables), len(LETTERS)), -1)  # [program, letter]
    reference = np.full(variables.shape, -1)
    for line in range(variables.shape[1]):
        letter = source[:, line] - FIRST_LETTER
        reference[:, line] = np.where(letter >= 0, latest[rows, letter], -1)
        latest[rows, variables[:, line]] = line
    return reference, latest


def _trace_chains(reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Depth and root of every line."""
    rows = np.arange(len(reference))
    depth, root = np.ones_like(reference), np.zeros_like(reference)
    for line in range(reference.shape[1]):
        origin = reference[:, line]
        depth[:, line] = np.where(origin < 0, 1, depth[rows, origin] + 1)
        root[:, line] = np.where(origin < 0, line, root[rows, origin])
    return depth, root


def trace_query_chains(programs: Programs, queries: np.ndarray, n_columns: int) -> np.ndarray:
    """Line indices [program, hop] of the chain of one query a program, root first, −1 beyond the chain's end."""
    rows = np.arange(len(programs))
    chains = np.full((len(programs), n_columns), -1)
    line = queries.copy()
    while (line >= 0).any():
        hop = programs.depth[rows, line] - 1  # [program]: the root is hop 0
        chains[rows[line >= 0], hop[line >= 0]] = line[line >= 0]
        line = np.where(line < 0, -1, programs.reference[rows, line])
    return chains
