"""The binding sampler as a plain Python loop, written from the rule alone: the benchmark's peer, the tests' oracle."""

from __future__ import annotations

import random
from dataclasses import dataclass

LETTERS = "abcdefghijklmnopqrstuvwxyz"
TOKENS = {symbol: index for index, symbol in enumerate("0123456789" + LETTERS + "=\n#:")}


@dataclass(frozen=True)
class Line:
    """One assignment with what it leads to."""

    variable: str
    source: str
    value: int
    depth: int
    root_line: int


def sample_question(
    rng: random.Random, n_lines: int, max_depth: int, p_constant: float, exponent: float
) -> tuple[list[Line], Line]:
    """One program and the line it is asked about, its depth uniform over 1…max_depth by rejection."""
    wanted = rng.randint(1, max_depth)
    while True:
        lines = sample_lines(rng, n_lines, max_depth, p_constant, exponent)
        candidates = [line for line in lines if line.depth == wanted]
        if candidates:
            return lines, rng.choice(candidates)


def sample_lines(rng: random.Random, n_lines: int, max_depth: int, p_constant: float, exponent: float) -> list[Line]:
    """One program, line by line."""
    unused = rng.sample(LETTERS, n_lines)
    lines: list[Line] = []
    for number, variable in enumerate(unused, start=1):
        extendable = [line for line in lines if line.depth < max_depth]
        if not extendable or rng.random() < p_constant:
            digit = rng.randrange(10)
            lines.append(Line(variable, str(digit), digit, 1, number))
        else:
            weights = [line.depth**exponent for line in extendable]
            origin = rng.choices(extendable, weights)[0]
            lines.append(Line(variable, origin.variable, origin.value, origin.depth + 1, origin.root_line))
    return lines


def encode_question(lines: list[Line], query: Line) -> list[int]:
    """The tokens of a program and its query."""
    text = "".join(f"{line.variable}={line.source}\n" for line in lines) + f"#{query.variable}:"
    return [TOKENS[character] for character in text]


def label_question(lines: list[Line], query: Line) -> dict[str, int]:
    """What the vectorised sampler says of a question, found by walking over the lines."""
    constants = [line for line in lines if line.depth == 1]
    before = [line for line in lines[: lines.index(query) + 1] if line.depth == 1]
    return {
        "depth": query.depth,
        "root_line": query.root_line,
        "n_chains": len(constants),
        "lines": len(lines),
        "rule_line_1": lines[0].value,
        "rule_line_2": lines[1].value if lines[1].depth == 1 else -1,
        "rule_first_constant": constants[0].value,
        "rule_most_recent": constants[-1].value,
        "rule_positional": before[-1].value,
    }
