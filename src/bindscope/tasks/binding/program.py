"""One binding program: its grammar, its parser and its reference interpreter.

A program is lines such as ``x=5`` or ``y=x`` and, last, a query ``#y:``. Every character is one token:

    >>> program = parse_program("a=5\\nb=a\\nc=3\\n#b:")
    >>> program.answer, program.chain, program.depth, program.root_line, program.distractor_lines
    (5, (2, 1), 2, 1, (3,))

Lines are counted from 1. A reference takes the value that its variable holds at that line, so with reassignment
``a=1 / b=a / a=2 / #b:`` answers 1.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bindscope.errors import BindscopeError
from bindscope.tasks.vocabulary import Vocabulary, show_symbol

DIGITS = string.digits
LETTERS = string.ascii_lowercase
VOCABULARY = Vocabulary((*DIGITS, *LETTERS, "=", "\n", "#", ":"))
FIRST_LETTER = 10  # token ids: digits 0–9, letters 10–35, then the four signs
EQUALS, NEWLINE, HASH, COLON = 36, 37, 38, 39
TOKEN_GROUPS = {
    "digits": range(FIRST_LETTER),
    "letters": range(FIRST_LETTER, EQUALS),
    "signs": range(EQUALS, len(VOCABULARY)),
}


def parse_program(text: str, reassignment: bool = False) -> Program:
    """Read a program from its text; the first mistake is an error that names its line.

    Windows line ends, trailing blanks and empty lines at the end are accepted. ``reassignment`` allows a variable to be
    assigned again.
    """
    lines = [line.rstrip() for line in text.rstrip().split("\n")]
    if lines == [""]:
        raise BindscopeError("the program is empty: write lines such as 'a=5' and end with a query such as '#a:'.")
    assignments: list[Assignment] = []
    for number, line in enumerate(lines, start=1):
        _check_characters(number, line)
        if line.startswith("#"):
            query = _parse_query(number, line)
            if number < len(lines):
                raise BindscopeError(f"line {number + 1}: nothing may follow the query on line {number}.")
            return Program(tuple(assignments), query)
        assignment = _parse_assignment(number, line)
        assigned = {earlier.variable: index for index, earlier in enumerate(assignments, start=1)}
        _check_assigned_before(number, assignment, assigned)
        if assignment.variable in assigned and not reassignment:
            raise BindscopeError(
                f"line {number}: '{assignment.variable}' is assigned twice, first on line "
                f"{assigned[assignment.variable]}; choose another letter."
            )
        assignments.append(assignment)
    raise BindscopeError(f"line {len(lines)}: no query follows; end the program with a line such as '#a:'.")


@dataclass(frozen=True)
class Assignment:
    """One line: a variable and what it takes its value from, a digit or another variable."""

    variable: str
    source: str

    @property
    def is_constant(self) -> bool:
        return self.source in DIGITS

    def __str__(self) -> str:
        return f"{self.variable}={self.source}"


@dataclass(frozen=True)
class Program:
    """Assignments and a query, with everything that follows from them."""

    assignments: tuple[Assignment, ...]
    query: str

    def __post_init__(self) -> None:
        assigned: dict[str, int] = {}
        for number, assignment in enumerate(self.assignments, start=1):
            _check_assigned_before(number, assignment, assigned)
            assigned[assignment.variable] = number
        if self.query not in assigned:
            raise BindscopeError(f"line {self.n_lines + 1}: '{self.query}' is queried but never assigned.")

    @classmethod
    def from_tokens(cls, tokens: Sequence[int]) -> Program:
        """The program that a row of tokens spells, up to its first query."""
        return parse_program("".join(VOCABULARY.decode(tokens)), reassignment=True)

    @property
    def text(self) -> str:
        """The program as written; character i is token i."""
        return "".join(f"{assignment}\n" for assignment in self.assignments) + f"#{self.query}:"

    @property
    def one_line(self) -> str:
        """The program as it is typed on a command line: ``a=5;b=a;#b:``."""
        return self.text.replace("\n", ";")

    @property
    def shown_tokens(self) -> list[str]:
        """Its tokens as they can be shown."""
        return [show_symbol(symbol) for symbol in self.text]

    @property
    def tokens(self) -> list[int]:
        return VOCABULARY.encode(self.text)

    @property
    def n_lines(self) -> int:
        """How many assignments there are; the query's line is not counted."""
        return len(self.assignments)

    @cached_property
    def references(self) -> tuple[int | None, ...]:
        """For each line the number of the line whose value it takes, None for a constant."""
        latest: dict[str, int] = {}
        found: list[int | None] = []
        for number, assignment in enumerate(self.assignments, start=1):
            found.append(None if assignment.is_constant else latest[assignment.source])
            latest[assignment.variable] = number
        return tuple(found)

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The digit that each line assigns."""
        held: dict[str, int] = {}
        assigned: list[int] = []
        for assignment in self.assignments:
            value = int(assignment.source) if assignment.is_constant else held[assignment.source]
            held[assignment.variable] = value
            assigned.append(value)
        return tuple(assigned)

    @property
    def query_line(self) -> int:
        """The line that last assigned the queried variable."""
        return max(n for n, assignment in enumerate(self.assignments, start=1) if assignment.variable == self.query)

    @property
    def chain(self) -> tuple[int, ...]:
        """Line numbers from the queried variable's line to the line with the constant."""
        return self.chain_of(self.query_line)

    @property
    def answer(self) -> int:
        return self.values[self.query_line - 1]

    @property
    def depth(self) -> int:
        return len(self.chain)

    @property
    def root_line(self) -> int:
        return self.chain[-1]

    @property
    def distractor_lines(self) -> tuple[int, ...]:
        """The lines that the answer does not depend on."""
        return tuple(number for number in range(1, self.n_lines + 1) if number not in self.chain)

    @property
    def distractor_chains(self) -> tuple[tuple[int, ...], ...]:
        """Every other chain: from each line that nothing refers to, back to its constant, save the queried chain."""
        ends = (number for number in range(1, self.n_lines + 1) if number not in self.references)
        return tuple(chain for chain in map(self.chain_of, ends) if chain != self.chain)

    def chain_of(self, line: int) -> tuple[int, ...]:
        """Line numbers from ``line`` to the constant that it takes its value from."""
        chain = [line]
        while (reference := self.references[chain[-1] - 1]) is not None:
            chain.append(reference)
        return tuple(chain)

    def with_root_constant(self, digit: int) -> Program:
        """The same program with another constant at the root of the queried chain."""
        root = self.root_line - 1
        changed = replace(self.assignments[root], source=str(digit))
        return replace(self, assignments=(*self.assignments[:root], changed, *self.assignments[root + 1 :]))


def _check_characters(number: int, line: str) -> None:
    for character in line:
        if character not in VOCABULARY.ids:
            hint = " (write lines without blanks)" if character.isspace() else ""
            raise BindscopeError(
                f"line {number}: unknown character {character!r}{hint}; a program uses a-z, 0-9, '=', '#' and ':'."
            )


def _parse_query(number: int, line: str) -> str:
    if len(line) == 3 and line[1] in LETTERS and line[2] == ":":
        return line[1]
    raise BindscopeError(f"line {number}: a query is '#', one letter and ':', such as '#a:', not '{line}'.")


def _parse_assignment(number: int, line: str) -> Assignment:
    if not line:
        raise BindscopeError(f"line {number}: the line is empty; write an assignment such as 'a=5'.")
    if "=" not in line:
        raise BindscopeError(f"line {number}: '=' is missing in '{line}'; write an assignment such as 'a=5'.")
    variable, _, source = line.partition("=")
    if len(variable) != 1 or variable not in LETTERS:
        raise BindscopeError(f"line {number}: the left of '=' must be one letter, not '{variable}'.")
    if len(source) != 1 or source not in LETTERS + DIGITS:
        raise BindscopeError(f"line {number}: the right of '=' must be one letter or one digit, not '{source}'.")
    return Assignment(variable, source)


def _check_assigned_before(number: int, assignment: Assignment, assigned: Mapping[str, int]) -> None:
    if not assignment.is_constant and assignment.source not in assigned:
        raise BindscopeError(f"line {number}: '{assignment.source}' is used before it is assigned.")
