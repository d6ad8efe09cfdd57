"""Templates: sequences of wildcards and regular tokens, and when two of them can describe the same sequence.

A template is written token by token; spaces mean nothing. A capital letter A–Z or a Greek small letter α–ω is a
wildcard, any other character is a regular token, and 'quotes' make a regular token of several characters (or of a
capital letter):

    ABA                   three wildcards, the first and the last the same
    A='+1';'print'(A)     wildcard, =, +1, ;, print, (, wildcard, )
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bindscope.errors import BindscopeError

WILDCARDS = "ABCDEFGHIJKLMNOPQRSTUVWXYZαβγδεζηθικλμνξοπρστυφχψω"


@dataclass(frozen=True)
class Wildcard:
    """A position that any symbol can take, the same symbol wherever the wildcard stands."""

    name: str


@dataclass(frozen=True)
class Template:
    """A sequence of wildcards (``Wildcard``) and regular tokens (``str``).

    >>> Template.parse("ABA").substitute({"A": "x", "B": "y"})
    ('x', 'y', 'x')
    >>> Template.parse("ABA").match(("x", "y", "y")) is None
    True
    """

    tokens: tuple[Wildcard | str, ...]

    def __post_init__(self) -> None:
        if not self.tokens:
            raise BindscopeError("A template needs at least one token.")

    @staticmethod
    def parse(text: str) -> Template:
        tokens: list[Wildcard | str] = []
        column = 0
        while column < len(text):
            token, width = _read_token(text, column)
            column += width
            if token is not None:
                tokens.append(token)
        return Template(tuple(tokens))

    def __str__(self) -> str:
        return "".join(_token_text(token) for token in self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def wildcards(self) -> tuple[str, ...]:
        """Names of the wildcards in order of first appearance."""
        return tuple(dict.fromkeys(token.name for token in self.tokens if isinstance(token, Wildcard)))

    @cached_property
    def regular_tokens(self) -> tuple[str, ...]:
        """The regular tokens in order of first appearance."""
        return tuple(dict.fromkeys(token for token in self.tokens if isinstance(token, str)))

    @cached_property
    def canonical(self) -> tuple[int | str, ...]:
        """Regular tokens as they are, wildcards as the order of their first appearance: equal iff equivalent."""
        order = {name: index for index, name in enumerate(self.wildcards)}
        return tuple(order[token.name] if isinstance(token, Wildcard) else token for token in self.tokens)

    def positions(self, wildcard: str) -> tuple[int, ...]:
        """Where a wildcard stands."""
        return tuple(index for index, token in enumerate(self.tokens) if token == Wildcard(wildcard))

    def substitute(self, symbols: Mapping[str, str]) -> tuple[str, ...]:
        """The sequence with a symbol for each wildcard; the substitution has to be injective."""
        chosen = [symbols[name] for name in self.wildcards]
        if len(set(chosen)) < len(chosen):
            raise BindscopeError(f"Template {self}: two wildcards were given the same symbol in {dict(symbols)}.")
        return tuple(symbols[token.name] if isinstance(token, Wildcard) else token for token in self.tokens)

    def match(self, sequence: Sequence[str]) -> dict[str, str] | None:
        """The injective substitution that makes this sequence, or None. Wildcards may stand for regular tokens too."""
        if len(sequence) != len(self.tokens):
            return None
        symbols: dict[str, str] = {}
        for token, symbol in zip(self.tokens, sequence):
            wanted = symbols.setdefault(token.name, symbol) if isinstance(token, Wildcard) else token
            if wanted != symbol:
                return None
        return symbols if len(set(symbols.values())) == len(symbols) else None


def are_equivalent(first: Template, second: Template) -> bool:
    """Whether two templates have the same regular tokens in the same positions and the same equality pattern."""
    return first.canonical == second.canonical


def find_common_sequence(
    first: Template, second: Template, *, substitute_regular: bool = True
) -> tuple[str, ...] | None:
    """A sequence that both templates match, or None when they are disjoint.

    With ``substitute_regular`` wildcards may also stand for regular tokens, as in the paper's definition; without it
    they stand for other symbols only, as in sampled data.

    Both templates have to give the same symbol at every position, so positions are merged into classes; the templates are
    disjoint exactly when that forces two wildcards of one template, or two regular tokens, to be the same.

    >>> find_common_sequence(Template.parse("AB"), Template.parse("Ax"))
    ('s0', 'x')
    >>> find_common_sequence(Template.parse("AA"), Template.parse("AB")) is None
    True
    """
    if len(first) != len(second):
        return None
    classes = _merge_classes(first, second)
    for members in classes:
        owners = [owner for owner, _ in members]
        has_wildcard = len(owners) > owners.count("regular")
        if len(set(owners)) < len(owners) or (has_wildcard and "regular" in owners and not substitute_regular):
            return None
    taken = {*first.regular_tokens, *second.regular_tokens}
    fresh = (name for index in range(len(first) + len(taken)) if (name := f"s{index}") not in taken)
    symbol_of: dict[tuple[str, str], str] = {}
    for members in classes:
        symbol = next((name for owner, name in members if owner == "regular"), None) or next(fresh)
        symbol_of.update(dict.fromkeys(members, symbol))
    return tuple(symbol_of[_node(token, "first")] for token in first.tokens)


def _merge_classes(first: Template, second: Template) -> list[list[tuple[str, str]]]:
    """Wildcards of either template and regular tokens, grouped by what has to be the same symbol."""
    class_of: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for left_token, right_token in zip(first.tokens, second.tokens):
        left = class_of.setdefault(_node(left_token, "first"), [_node(left_token, "first")])
        right = class_of.setdefault(_node(right_token, "second"), [_node(right_token, "second")])
        if left is not right:
            left.extend(right)
            class_of.update(dict.fromkeys(right, left))
    return list({id(members): members for members in class_of.values()}.values())


def _node(token: Wildcard | str, owner: str) -> tuple[str, str]:
    return (owner, token.name) if isinstance(token, Wildcard) else ("regular", token)


def check_templates(templates: Iterable[Template]) -> None:
    """Refuse templates of different lengths and templates equivalent to one another."""
    seen: dict[tuple[int | str, ...], Template] = {}
    for template in templates:
        if seen and len(template) != len(next(iter(seen.values()))):
            shortest = next(iter(seen.values()))
            raise BindscopeError(
                f"Templates {shortest} and {template} have {len(shortest)} and {len(template)} tokens; make them equal."
            )
        if template.canonical in seen:
            raise BindscopeError(
                f"Templates {seen[template.canonical]} and {template} are equivalent; remove one of them."
            )
        seen[template.canonical] = template


def _read_token(text: str, column: int) -> tuple[Wildcard | str | None, int]:
    """The token that starts at ``column`` (None for a space) and how many characters it takes."""
    character = text[column]
    if character.isspace():
        return None, 1
    if character != "'":
        return (Wildcard(character) if character in WILDCARDS else character), 1
    quoted = re.match(r"'([^'\s]+)'", text[column:])
    if quoted is None:
        raise BindscopeError(
            f"Template {text!r}, column {column + 1}: a quoted token needs a closing ' and no spaces inside."
        )
    return quoted[1], len(quoted[0])


def _token_text(token: Wildcard | str) -> str:
    if isinstance(token, Wildcard):
        return token.name
    return token if len(token) == 1 and token not in WILDCARDS else f"'{token}'"
