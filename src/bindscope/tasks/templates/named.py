"""The tasks of study 3 by name: which templates they have and what each is to be answered with.

Real labels have mean 0 and mean square 1 over the templates of a task, so that a loss of 1 means knowing nothing.
A symbolic label is a wildcard of its template (answer: the symbol it stands for) or a regular token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.templates.template import WILDCARDS, Template, Wildcard


@dataclass(frozen=True)
class TemplateSet:
    """Templates in their text form with one label each, all numbers or all token texts."""

    templates: tuple[str, ...]
    labels: tuple[float | str, ...]
    about: str = ""


@dataclass(frozen=True)
class RandomTemplates:
    """How ``random`` templates are drawn: uniform sequences over the wildcards and regular tokens, no two equivalent."""

    length: int = 5
    n_templates: int = 8
    n_wildcards: int = 3
    n_regular: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        bounds = {"length": (2, 20), "n_templates": (2, 15), "n_wildcards": (2, 7), "n_regular": (0, 2)}
        for name, (low, high) in bounds.items():
            if not low <= getattr(self, name) <= high:
                raise BindscopeError(f"task.random.{name}: must lie in {low}..{high}, got {getattr(self, name)}.")

    def draw(self) -> TemplateSet:
        """The templates, the same for the same settings, with standardised Gaussian labels."""
        rng = np.random.default_rng(self.seed)
        alphabet = [*map(Wildcard, WILDCARDS[: self.n_wildcards]), *"xy"[: self.n_regular]]
        found: dict[tuple[int | str, ...], Template] = {}
        for _ in range(1000 * self.n_templates):
            template = Template(tuple(alphabet[index] for index in rng.integers(len(alphabet), size=self.length)))
            found.setdefault(template.canonical, template)
            if len(found) == self.n_templates:
                labels = standardise_labels(rng.standard_normal(self.n_templates).tolist())
                return TemplateSet(tuple(map(str, found.values())), labels)
        raise BindscopeError(
            f"task.random: only {len(found)} different templates of length {self.length} were found, not"
            f" {self.n_templates}; ask for fewer templates or longer ones."
        )


def standardise_labels(labels: Sequence[float]) -> tuple[float, ...]:
    """The labels shifted to mean 0 and scaled to mean square 1."""
    values = np.array(labels, dtype=np.float64)
    values -= values.mean()
    return tuple((values / np.sqrt((values**2).mean())).tolist())


def _majority(length: int) -> TemplateSet:
    sequences = _two_symbol_sequences(length)
    labels = tuple(1.0 if 2 * sequence.count("A") > length else -1.0 for sequence in sequences)
    return TemplateSet(
        sequences, labels, f"length {length}: +1 if the first symbol fills more than half of the positions"
    )


def _counting(length: int) -> TemplateSet:
    sequences = _two_symbol_sequences(length)
    labels = standardise_labels([sequence.count("A") for sequence in sequences])
    return TemplateSet(sequences, labels, f"length {length}: how often the first symbol occurs (standardised)")


def _two_symbol_sequences(length: int) -> tuple[str, ...]:
    """All templates of at most two symbols; the first is A, for else a renamed template would come twice."""
    return tuple("A" + "".join(rest) for rest in product("AB", repeat=length - 1))


def _print_real(orders: Sequence[tuple[str, str]], about: str) -> TemplateSet:
    """The number of one of two names, whose numbers are assigned in one of these orders."""
    templates, labels = [], []
    for (first, second), printed in product(orders, "AB"):
        templates.append(f"A='{first}',B='{second}','print'({printed})")
        labels.append(float(first if printed == "A" else second))
    return TemplateSet(tuple(templates), tuple(labels), about)


def _print_symbolic() -> TemplateSet:
    templates = tuple(f'A="C",B="D",\'print\'({printed})' for printed in "AB")
    return TemplateSet(templates, ("C", "D"), 'a="q",b="r",print(a): the symbol that is printed')


NAMED_TASKS = MappingProxyType(
    {
        "same-different": TemplateSet(("AA", "AB"), (1.0, -1.0), "are the two symbols the same?"),
        "aba-abb": TemplateSet(("ABA", "ABB"), (1.0, -1.0), "does the third symbol repeat the first or the second?"),
        "aabb-abab": TemplateSet(("AABB", "ABAB"), (1.0, -1.0), "pairs or alternation?"),
        "majority-2": _majority(2),
        "majority-4": _majority(4),
        "majority-6": _majority(6),
        "majority-8": _majority(8),
        "counting-5": _counting(5),
        "counting-7": _counting(7),
        "copy": TemplateSet(("A",), ("A",), "repeat the symbol"),
        "print-real": _print_real((("+1", "-1"),), "a=+1,b=-1,print(a): the number that is printed"),
        "print-swapped": _print_real(
            (("+1", "-1"), ("-1", "+1")), "the same, or a=-1,b=+1: which number belongs to which position varies too"
        ),
        "print-symbolic": _print_symbolic(),
    }
)
