"""Templates with everything Python knows of them, for the browser's own reading of templates to be checked against.

python -m bindscope.web.template_cases frontend/src/templates/cases.json
"""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bindscope.errors import BindscopeError
from bindscope.tasks.templates import NAMED_TASKS, Template, are_equivalent, find_common_sequence
from bindscope.tasks.templates.checks import find_problems

FIXED = (
    "", " ", "A", "AA", "AB", "ab", "aA", "ABA", "A B\tA", "αβα", "Aα", "'", "''", "' '", "'a b'", "'+1'", "A='+1';'print'(A)", "'A'A", "A'A'",
    "'AB'", "'unclosed", "A'", "A''", "s0 A", "s0s1", "x", "Ax", "xA", "xx", "\U0001f600A", "'\U0001f600'", "A\u00a0B", "A\u2003B", "A\ufeffB",
    "A\x1cB", "A\x85B", "Σσς", "ÄÖ", "é", "\"A\"", "A,B", "A|B", "AABBCC", "ABCABC",
)  # fmt: skip
SETS = (
    ("AA", "AB"), ("AB", "AA", "BA"), ("AB", "Ax"), ("Ax", "xA"), ("Ax", "yA"), ("A", "AB"), ("AB", "BA"), ("AB", "xy"), ("AB", "xx"), ("As0", "s0A"),
    ("ABx", "Axx", "AAx"), ("A",), (), ("xA", "xB", "Ay"), ("ABC", "AAB", "ABA"), ("'s0's1A", "BC's2'"),
)  # fmt: skip
N_DRAWN, SEED = 60, 0


def make_cases() -> dict[str, Any]:
    """Texts with their reading, pairs with a common sequence, and sets with their problems."""
    rng = np.random.default_rng(SEED)
    drawn = [_draw(rng, int(rng.integers(1, 5))) for _ in range(N_DRAWN)]
    named = [list(task.templates) for task in NAMED_TASKS.values() if len(task.templates) <= 8]
    return {
        "templates": [_describe(text) for text in (*FIXED, *drawn)],
        "pairs": [_describe_pair(*pair) for pair in zip(drawn[::2], drawn[1::2])]
        + [_describe_pair(first, second) for size in (2, 3) for first, second in combinations(_all_sequences(size), 2)],
        "sets": [{"templates": list(each), "problems": list(find_problems(each))} for each in (*SETS, *named)],
    }


def encode_cases() -> bytes:
    """The cases as they are written to a file, one a line."""
    parts = []
    for name, rows in make_cases().items():
        lines = ",\n".join("  " + orjson.dumps(row).decode() for row in rows)
        parts.append(f'"{name}":[\n{lines}\n]')
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _describe(text: str) -> dict[str, Any]:
    try:
        found = Template.parse(text)
    except BindscopeError as problem:
        return {"text": text, "error": str(problem)}
    regular, wildcards = list(found.regular_tokens), list(found.wildcards)
    return {"text": text, "shown": str(found), "length": len(found), "wildcards": wildcards, "regular": regular}


def _describe_pair(first: str, second: str) -> dict[str, Any]:
    left, right = Template.parse(first), Template.parse(second)
    common = find_common_sequence(left, right)
    return {"first": first, "second": second, "equivalent": are_equivalent(left, right), "common": common}


def _draw(rng: np.random.Generator, length: int) -> str:
    return "".join("ABCxy"[index] for index in rng.integers(5, size=length))


def _all_sequences(length: int) -> list[str]:
    """Strings over two wildcards and a regular token."""
    strings = [""]
    for _ in range(length):
        strings = [string + letter for string in strings for letter in "ABx"]
    return strings[:: 1 if length < 3 else 3]


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(encode_cases())
