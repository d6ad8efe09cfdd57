"""Sums with everything Python knows of them, for the browser's own reading of sums to be checked against.

python -m bindscope.web.sum_cases frontend/src/sums/cases.json
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bindscope.errors import BindscopeError
from bindscope.tasks.assign_add import AssignAddTask

TASKS = (
    AssignAddTask(),
    AssignAddTask(modulus=23, n_variables=5, operator="-"),
    AssignAddTask(operator="*"),
    AssignAddTask(modulus=24, operator="symmetric"),
    AssignAddTask(modulus=10, n_variables=4, operator="dihedral"),
)
FIXED = (
    "", "|", " | ", "c=1", "c=1 b=17", "c=1 b=17 b+19", "| 1+2", "c=1 b=17 | b+19", "c=1,b=17|b+c", "  c=1\tb=17  |  b + 19 ",
    "_ c=1 _ _ b=17 | b+19", "c=1 c=2 | c+1", "c=1 | b+1", "c=1 | c+b", "c=1 | c", "c=1 | c+", "c=1 | +c", "c=1 | c++1",
    "c=1 | c+1+1", "c=1 | c 1", "z=1 | z+1", "C=1 | C+1", "=1 | 1+1", "c= | 1+1", "c | 1+1", "c=59 | 1+1", "c=1 | 59+1",
    "c=01 | c+007", "c=-1 | c+1", "c=1.5 | c+1", "cc=1 | 1+1", "c==1 | 1+1", "a=1 b=2 c=3 d=4 e=5 f=6 | a+f",
    "a=1 b=2 c=3 d=4 e=5 f=6 g=7 | a+f", "_ _ _ _ _ _ _ _ _ _ _ _ | 1+1", "_ _ _ _ _ _ _ _ _ _ _ _ _ | 1+1",
    "_ _ _ _ _ _ _ _ _ _ _ a=1 | 1+1", "c=1 | 1+1 | 2", "c=1 || 1+1", "c=\u00e9 | 1+1", "\U0001f600=1 | 1+1", "\U0001f600 | 1+q",
    "c=1 | \U0001f600+q", "c=1\u00a0b=2 |\u2003b+c", "c=1\x1cb=2 | b+c\x85", "c=1\ufeff | c+1", "c=\u0661 | c+1", "c=99999999999999999999 | c+1",
    "_=1 | 1+1", "__ | 1+1", "c=1 | c-1", "c=1 | c*2", "a=1 b=2 | a-b", "a=1 b=2 | a*b", "a=1 | a+a", "c=1 | PAD+1", "PAD | 1+1", "|1+1",
    "a=1 b=2 | a@b", "a=1 b=2 | b@a", "c=1 | c@9", "_ _ c=7 a=8 | 5@c", "c=1 | c@@1", "c=1 | @1", "c=3 a=9 | c@a", "| 8@7",
)  # fmt: skip
N_DRAWN, N_DAMAGED, SEED = 12, 20, 0


def make_cases() -> list[dict[str, Any]]:
    """For each task its settings, its vocabulary, and sums: text, and the facts or the error."""
    rng = np.random.default_rng(SEED)
    return [_describe_task(task, rng) for task in TASKS]


def encode_cases() -> bytes:
    """The cases as they are written to a file, one sum a line."""
    parts = []
    for case in make_cases():
        rows = ",\n".join("  " + orjson.dumps(row).decode() for row in case.pop("sums"))
        parts.append(orjson.dumps(case).decode()[:-1] + f',"sums":[\n{rows}\n]}}')
    return ("[\n" + ",\n".join(parts) + "\n]\n").encode()


def _describe_task(task: AssignAddTask, rng: np.random.Generator) -> dict[str, Any]:
    splits = task.sample_evaluation(rng, N_DRAWN // 6)
    drawn = [task.render(row) for batch in splits.values() for row in batch.tokens]
    damaged = [_damage(drawn[index % len(drawn)], rng) for index in range(N_DAMAGED)]
    return {
        "modulus": task.modulus,
        "nVariables": task.n_variables,
        "operator": task.operator,
        "vocabulary": list(task.vocabulary.symbols),
        "sums": [_describe(task, text) for text in (*FIXED, *drawn, *damaged)],
    }


def _describe(task: AssignAddTask, text: str) -> dict[str, Any]:
    try:
        tokens = task.parse(text)
    except BindscopeError as problem:
        return {"text": text, "error": str(problem)}
    found = task.locate(tokens)
    operands = [
        {
            "variable": operand.variable,
            "value": operand.value,
            "position": operand.position,
            "valuePosition": operand.value_position,
        }
        for operand in found.operands
    ]
    assignments = [
        {"variable": one.variable, "value": one.value, "position": one.position} for one in found.assignments
    ]
    facts = {"text": task.render(tokens), "tokens": tokens.tolist(), "answer": found.answer}
    return {"text": text, "facts": {**facts, "operands": operands, "assignments": assignments}}


def _damage(text: str, rng: np.random.Generator) -> str:
    """The text with one character taken out, doubled or exchanged."""
    position = int(rng.integers(len(text)))
    other = "abz19=|+_ ,-"[int(rng.integers(12))]
    return text[:position] + ("", text[position] * 2, other)[int(rng.integers(3))] + text[position + 1 :]


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(encode_cases())
