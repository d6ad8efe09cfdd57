"""Templates as a person types them: what is wrong with a set of them, where two overlap, and sequences they make.

>>> find_problems(["AB", "Ax"])
('AB and Ax are not disjoint: both match s0 x (AB: A = s0, B = x; Ax: A = s0).',)
>>> [sample.sequence for sample in sample_sequences("ABA", 1, np.random.default_rng(0))]
[('v', 'q', 'v')]
"""

from __future__ import annotations

import string as characters
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.templates.template import Template, are_equivalent, find_common_sequence

MOST_SAMPLES = 10_000


@dataclass(frozen=True)
class Overlap:
    """Two templates that are not disjoint, and a sequence that matches both."""

    first: str
    second: str
    sequence: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.first} and {self.second} both match {' '.join(self.sequence)}"


@dataclass(frozen=True)
class TemplateSample:
    """A sequence of a template, and the symbol that each wildcard stands for."""

    sequence: tuple[str, ...]
    substitution: dict[str, str]


def find_problems(templates: Sequence[str | Template], labels: Sequence[float | str] | None = None) -> tuple[str, ...]:
    """One sentence for each thing that is wrong with templates as a task; empty when all is well.

    They need equal lengths, no two may be equivalent or match the same sequence, and labels are all numbers or all tokens,
    one for each template.
    """
    parsed = [parse(template) for template in templates]
    if not parsed:
        return ("There are no templates.",)
    problems = []
    if len({len(template) for template in parsed}) > 1:
        lengths = ", ".join(f"{template} has {len(template)}" for template in parsed)
        problems.append(f"Templates need equally many tokens: {lengths}.")
    for first, second in combinations(parsed, 2):
        if are_equivalent(first, second):
            problems.append(f"{first} and {second} are equivalent: they make the same sequences.")
    problems += [describe_overlap(overlap) for overlap in find_overlaps(parsed)]
    return (*problems, *(_find_label_problems(parsed, labels) if labels is not None else ()))


def find_overlaps(templates: Sequence[Template]) -> tuple[Overlap, ...]:
    """Pairs of templates, not equivalent, that a common sequence matches; wildcards may stand for regular tokens too."""
    found = []
    for first, second in combinations(templates, 2):
        common = None if are_equivalent(first, second) else find_common_sequence(first, second)
        if common is not None:
            found.append(Overlap(str(first), str(second), common))
    return tuple(found)


def describe_overlap(overlap: Overlap) -> str:
    """The common sequence, and what each template's wildcards stand for in it."""
    words = [f"{name}: {_describe_match(name, overlap.sequence)}" for name in (overlap.first, overlap.second)]
    return (
        f"{overlap.first} and {overlap.second} are not disjoint:"
        f" both match {' '.join(overlap.sequence)} ({'; '.join(words)})."
    )


def sample_sequences(template: str | Template, n: int, rng: np.random.Generator) -> tuple[TemplateSample, ...]:
    """Sequences of one template, a different symbol for each wildcard; symbols are letters, or s0, s1, … for many."""
    parsed = parse(template)
    if not 1 <= n <= MOST_SAMPLES:
        raise BindscopeError(f"n: give 1 to {MOST_SAMPLES:,} samples, got {n}.")
    letters = [letter for letter in characters.ascii_lowercase if letter not in parsed.regular_tokens]
    names = letters if len(parsed.wildcards) <= len(letters) else _numbered_symbols(parsed)
    samples = []
    for _ in range(n):
        chosen = rng.choice(len(names), size=len(parsed.wildcards), replace=False)
        substitution = {wildcard: names[index] for wildcard, index in zip(parsed.wildcards, chosen)}
        samples.append(TemplateSample(parsed.substitute(substitution), substitution))
    return tuple(samples)


def parse(template: str | Template) -> Template:
    return Template.parse(template) if isinstance(template, str) else template


def _numbered_symbols(template: Template) -> list[str]:
    n = 2 * (len(template.wildcards) + len(template.regular_tokens))
    return [name for name in (f"s{index}" for index in range(n)) if name not in template.regular_tokens]


def _describe_match(text: str, sequence: tuple[str, ...]) -> str:
    substitution = Template.parse(text).match(sequence) or {}
    return ", ".join(f"{wildcard} = {symbol}" for wildcard, symbol in substitution.items()) or "no wildcards"


def _find_label_problems(templates: Sequence[Template], labels: Sequence[float | str]) -> tuple[str, ...]:
    if len(labels) != len(templates):
        return (f"There are {len(templates)} templates and {len(labels)} labels; each template needs one.",)
    texts = [label for label in labels if isinstance(label, str)]
    if not texts:
        return () if np.isfinite(np.array(labels, dtype=float)).all() else ("Labels that are numbers must be finite.",)
    if len(texts) < len(labels):
        return ("Labels have to be all numbers or all tokens.",)
    return tuple(
        f"Label {label} of {template}: a label is a wildcard of its template or one regular token."
        for template, label in zip(templates, texts)
        if not _is_label_of(label, template)
    )


def _is_label_of(label: str, template: Template) -> bool:
    found = Template.parse(label) if label.strip() else None
    return found is not None and len(found) == 1 and set(found.wildcards) <= set(template.wildcards)
