"""Programs with everything Python knows of them, for the browser's own reading of programs to be checked against.

python -m bindscope.web.program_cases frontend/src/program/cases.json
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import BindingTask, Program, pair_programs, parse_program
from bindscope.tasks.binding.positions import NamedPosition, name_at
from bindscope.tasks.binding.program import VOCABULARY

TASKS = (
    BindingTask(),
    BindingTask(lines=2, max_depth=2),
    BindingTask(lines=5, max_depth=5),
    BindingTask(lines=9, max_depth=3, reassign=0.5),
)
WRONG = (
    "", "  \n ", "a=5", "a=5\n", "#a:", "a=5\n#b:", "a=5\n#a", "a=5\n#a:\n#a:", "a=5\n#a:\nb=1", "a=5\n\n#a:", "\na=5\n#a:",
    "a=b\n#a:", "a=a\n#a:", "a=5\na=6\n#a:", "a=5\nb=c\nc=1\n#b:", "a\n#a:", "=5\n#a:", "a=\n#a:", "ab=5\n#a:", "a=55\n#a:",
    "a==5\n#a:", "A=5\n#a:", "a = 5\n#a:", " a=5\n#a:", "a=5;b=a\n#b:", "a=5\tb\n#a:", "a='\n#a:", "a=\\\n#a:", "a=é\n#a:",
    "a=\u00a0b\n#a:", "a=\u2003b\n#a:", "a=\u200bb\n#a:", "a=\U0001f600b\n#a:", "a=\ufeffb\n#a:", "a=\x1cb\n#a:", "a=\x85b\n#a:",
    "a=5\n#a:#", "a=5\n# a:", "a=5\n##:", "5=a\n#a:", "a=#\n#a:", "a=:\n#a:", "a:5\n#a:",
)  # fmt: skip
RIGHT = ("a=5\n#a:", "a=5\r\nb=a\r\n#b:\r\n", "a=5  \nb=a\x85\n#b:\x1c\n\n", "a=1\nb=a\nc=b\nd=c\n#d:")
N_DRAWN, N_DAMAGED, SEED = 8, 60, 0


def make_cases() -> dict[str, Any]:
    """``programs``: text, reassignment, and the facts or the error. ``pairs``: two texts and the refusal, or null."""
    rng = np.random.default_rng(SEED)
    drawn = [(text, task.reassign > 0) for task in TASKS for text in _draw_texts(task, rng)]
    damaged = [(_damage(*drawn[row % len(drawn)], rng), bool(row % 3 == 0)) for row in range(N_DAMAGED)]
    fixed = [(text, False) for text in RIGHT + WRONG] + [("a=1\nb=a\na=2\n#b:", True), ("a=1\na=a\n#a:", True)]
    return {
        "vocabulary": list(VOCABULARY.symbols),
        "programs": [_describe(text, again) for text, again in [*fixed, *drawn, *damaged]],
        "pairs": [_describe_pair(*pair) for pair in _draw_pairs(rng)],
    }


def encode_cases() -> bytes:
    """The cases as they are written to a file, one program a line."""
    cases = make_cases()
    parts = [f'"vocabulary": {orjson.dumps(cases["vocabulary"]).decode()}']
    for name in ("programs", "pairs"):
        rows = ",\n".join("  " + orjson.dumps(row).decode() for row in cases[name])
        parts.append(f'"{name}": [\n{rows}\n]')
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _draw_texts(task: BindingTask, rng: np.random.Generator) -> list[str]:
    batch = task.sample_evaluation(rng, N_DRAWN)["test"]
    return [Program.from_tokens(row).text for row in batch.tokens]


def _damage(text: str, again: bool, rng: np.random.Generator) -> str:
    """One character of a program left out, put in, or changed: often, but not always, a mistake."""
    position = int(rng.integers(len(text)))
    letter = str(rng.choice([*"abcxyz059=#:;A \n"]))
    kept = text[position + int(rng.integers(2)) :]
    return text[:position] + (letter if rng.random() < 0.8 else "") + kept


def _describe(text: str, reassignment: bool) -> dict[str, Any]:
    case: dict[str, Any] = {"text": text, "reassignment": reassignment}
    try:
        program = parse_program(text, reassignment)
    except BindscopeError as problem:
        return {**case, "error": str(problem)}
    return {**case, "facts": _list_facts(program)}


def _list_facts(program: Program) -> dict[str, Any]:
    named = [name_at(position, program.n_lines) for position in range(len(program.tokens))]
    changed = (program.answer + 1) % 10
    return {
        "text": program.text,
        "tokens": program.tokens,
        "parts": [each.part for each in named],
        "lines": [_line_of(each, program) for each in named],
        "nLines": program.n_lines,
        "references": program.references,
        "values": program.values,
        "depths": [len(program.chain_of(line)) for line in range(1, program.n_lines + 1)],
        "queryLine": program.query_line,
        "chain": program.chain,
        "answer": program.answer,
        "depth": program.depth,
        "rootLine": program.root_line,
        "distractorLines": program.distractor_lines,
        "distractorChains": program.distractor_chains,
        "changedRoot": program.with_root_constant(changed).text,
    }


def _line_of(position: NamedPosition, program: Program) -> int:
    return program.n_lines + 1 if position.line is None else position.line


def _draw_pairs(rng: np.random.Generator) -> list[tuple[str, str]]:
    texts = _draw_texts(TASKS[0], rng)
    longer = _draw_texts(TASKS[2], rng)
    changed = [parse_program(text).with_root_constant(int(rng.integers(10))).text for text in texts]
    return [*zip(texts, changed), *zip(texts, longer), *pairwise(texts), (texts[0], texts[0])]


def _describe_pair(base: str, counterfactual: str) -> dict[str, Any]:
    try:
        pair_programs(parse_program(base), parse_program(counterfactual))
    except BindscopeError as problem:
        return {"base": base, "counterfactual": counterfactual, "error": str(problem)}
    return {"base": base, "counterfactual": counterfactual, "error": None}


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(encode_cases())
