"""The sixteen tokens of one sum, as text, as structure and as positions.

Columns 0 to 11 hold up to six ``variable number`` blocks with PADs in the gaps, column 12 the operator, 13 and 14 the
operands, 15 the equals sign at which the answer is read:

    text       _ c=1 _ _ b=17 | b+19      (PADs after the last block are left out)
    tokens     PAD c 1 PAD PAD b 17 PAD PAD PAD PAD PAD + b 19 =
    columns    0   1 2 3   4   5 6  7 …              11 12 13 14 15
"""

from __future__ import annotations

import re
from collections.abc import Sequence as AnySequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.assign_add.operators import Operator, combine, symbol_of
from bindscope.tasks.vocabulary import Vocabulary

MAX_ASSIGNMENTS = 6
N_PREFIX = 2 * MAX_ASSIGNMENTS
OPERATOR_POSITION = N_PREFIX
OPERAND_POSITIONS = (N_PREFIX + 1, N_PREFIX + 2)
ANSWER_POSITION = N_PREFIX + 3
N_POSITIONS = N_PREFIX + 4
PAD = "PAD"
PAD_TEXT = "_"


@dataclass(frozen=True)
class Assignment:
    """``b=17`` at columns ``position`` (the variable) and ``position + 1`` (its value)."""

    variable: str
    value: int
    position: int

    @property
    def value_position(self) -> int:
        return self.position + 1


@dataclass(frozen=True)
class Operand:
    """What stands at column 13 or 14, and where its number is written: there, or in the variable's assignment."""

    variable: str | None
    value: int
    position: int
    value_position: int


@dataclass(frozen=True)
class Sequence:
    """One sum taken apart: its assignments from left to right, its two operands and its answer."""

    assignments: tuple[Assignment, ...]
    operands: tuple[Operand, Operand]
    answer: int


@dataclass(frozen=True)
class SequenceFormat:
    """Text, tokens and structure of the sums over one modulus and one set of variables.

    >>> sums = SequenceFormat(modulus=59, n_variables=12)
    >>> int(sums.solve(sums.parse("c=1 b=17 | b+19")))
    36
    """

    modulus: int
    n_variables: int
    operator: Operator = "+"

    @cached_property
    def variables(self) -> tuple[str, ...]:
        return tuple("abcdefghijklmnopqrstuvwxyz"[: self.n_variables])

    @cached_property
    def vocabulary(self) -> Vocabulary:
        numbers = tuple(str(number) for number in range(self.modulus))
        return Vocabulary((*numbers, self.operator_symbol, "=", PAD, *self.variables))

    @property
    def operator_symbol(self) -> str:
        """How the operator is typed."""
        return symbol_of(self.operator)

    @property
    def operator_token(self) -> int:
        return self.modulus

    @property
    def equals_token(self) -> int:
        return self.modulus + 1

    @property
    def pad_token(self) -> int:
        return self.modulus + 2

    @property
    def first_variable_token(self) -> int:
        return self.modulus + 3

    def combine(self, n1: np.ndarray, n2: np.ndarray) -> np.ndarray:
        """The answer to ``n1 operator n2``."""
        return combine(self.operator, self.modulus, n1, n2)

    def value_positions(self, tokens: np.ndarray) -> np.ndarray:
        """The columns that hold the numbers of the two operands: tokens [..., 16] to columns [..., 2]."""
        tokens = self._check_rows(tokens)
        operands = tokens[..., OPERAND_POSITIONS]  # [..., 2]
        is_variable = operands >= self.first_variable_token
        here = tokens[..., None, :N_PREFIX] == operands[..., :, None]  # [..., 2, prefix]
        if (is_variable & ~here.any(-1)).any():
            raise BindscopeError("An operand is a variable that the sequence never assigns; assign it first.")
        return np.where(is_variable, here.argmax(-1) + 1, np.array(OPERAND_POSITIONS))

    def operand_values(self, tokens: np.ndarray) -> np.ndarray:
        """The numbers n1 and n2 that the operands stand for: tokens [..., 16] to numbers [..., 2]."""
        return np.take_along_axis(np.asarray(tokens), self.value_positions(tokens), axis=-1)

    def solve(self, tokens: np.ndarray) -> np.ndarray:
        """The reference interpreter: tokens [..., 16] to answers [...]."""
        values = self.operand_values(tokens)
        return self.combine(values[..., 0], values[..., 1])

    def locate(self, tokens: AnySequence[int] | np.ndarray) -> Sequence:
        """Take one sequence of tokens apart."""
        row = self._check_rows(np.asarray(tokens).reshape(-1))
        starts = np.flatnonzero(row[:N_PREFIX] >= self.first_variable_token)
        assignments = tuple(
            Assignment(self.vocabulary.symbols[row[start]], int(row[start + 1]), int(start)) for start in starts
        )
        first, second = (
            Operand(
                variable=self.vocabulary.symbols[row[position]] if row[position] >= self.first_variable_token else None,
                value=int(row[value_position]),
                position=position,
                value_position=int(value_position),
            )
            for position, value_position in zip(OPERAND_POSITIONS, self.value_positions(row))
        )
        return Sequence(assignments, (first, second), int(self.solve(row)))

    def render(self, tokens: AnySequence[int] | np.ndarray) -> str:
        """Tokens to text; ``parse`` is its inverse."""
        row = self._check_rows(np.asarray(tokens).reshape(-1))
        prefix = self.vocabulary.decode(row[:N_PREFIX].tolist())
        parts: list[str] = []
        for symbol in prefix:
            if parts and parts[-1].endswith("="):
                parts[-1] += symbol
            else:
                parts.append(PAD_TEXT if symbol == PAD else f"{symbol}=")
        while parts and parts[-1] == PAD_TEXT:
            parts.pop()
        first, second = self.vocabulary.decode(row[list(OPERAND_POSITIONS)].tolist())
        return " ".join([*parts, "|", f"{first}{self.operator_symbol}{second}"])

    def parse(self, text: str) -> np.ndarray:
        """Text such as ``c=1 _ b=17 | b+19`` to tokens [16]; missing PADs go after the last assignment."""
        prefix_text, bar, sum_text = text.partition("|")
        if not bar:
            raise BindscopeError(f"column {len(text) + 1}: no '|' before the sum; write for example 'c=1 b=17 | b+19'.")
        prefix = self._parse_prefix(prefix_text)
        operands = self._parse_sum(sum_text, len(prefix_text) + 2, prefix)
        prefix += [PAD] * (N_PREFIX - len(prefix))
        return np.array(self.vocabulary.encode([*prefix, self.operator_symbol, *operands, "="]), dtype=np.int64)

    def _parse_prefix(self, text: str) -> list[str]:
        symbols: list[str] = []
        for word in re.finditer(r"[^\s,]+", text):
            column = word.start() + 1
            if word[0] == PAD_TEXT:
                symbols.append(PAD)
            else:
                symbols += self._parse_assignment(word[0], column, symbols)
            if len(symbols) > N_PREFIX:
                raise BindscopeError(
                    f"column {column}: '{word[0]}' does not fit; assignments take two and '_' one of {N_PREFIX} positions."
                )
        return symbols

    def _parse_assignment(self, word: str, column: int, before: list[str]) -> list[str]:
        variable, equals, value = word.partition("=")
        if not equals:
            raise BindscopeError(f"column {column}: '{word}' is not an assignment; write for example 'b=17'.")
        if variable not in self.variables:
            raise BindscopeError(f"column {column}: '{variable}' is not a variable; use {self._variable_range}.")
        if variable in before:
            raise BindscopeError(f"column {column}: '{variable}' is assigned twice.")
        return [variable, self._parse_number(value, column + len(variable) + 1)]

    def _parse_sum(self, text: str, column: int, prefix: list[str]) -> list[str]:
        symbol = re.escape(self.operator_symbol)
        match = re.fullmatch(rf"(\s*)([^\s{symbol}]+)(\s*){symbol}(\s*)(\S+)\s*", text)
        if match is None:
            raise BindscopeError(
                f"column {column}: '{text.strip()}' is not a sum of two operands; write for example"
                f" 'b{self.operator_symbol}{min(19, self.modulus - 1)}'."
            )
        return [self._parse_operand(match[group], column + match.start(group), prefix) for group in (2, 5)]

    def _parse_operand(self, word: str, column: int, prefix: list[str]) -> str:
        if word not in self.variables:
            return self._parse_number(word, column)
        if word not in prefix:
            raise BindscopeError(f"column {column}: '{word}' is used but never assigned.")
        return word

    def _parse_number(self, word: str, column: int) -> str:
        if not re.fullmatch(r"[0-9]+", word) or int(word) >= self.modulus:
            wanted = f"a number from 0 to {self.modulus - 1}"
            raise BindscopeError(f"column {column}: '{word}' is not {wanted}; variables are {self._variable_range}.")
        return str(int(word))

    @property
    def _variable_range(self) -> str:
        return f"{self.variables[0]} to {self.variables[-1]}"

    def _check_rows(self, tokens: np.ndarray) -> np.ndarray:
        tokens = np.asarray(tokens)
        if tokens.shape[-1] != N_POSITIONS:
            raise BindscopeError(f"A sequence has {N_POSITIONS} tokens, got {tokens.shape[-1]}.")
        return tokens
