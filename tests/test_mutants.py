"""Mutants are small changes that still parse, and never touch what does not run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutants.mutate import find_mutants

SOURCES = sorted((Path(__file__).parents[1] / "src" / "bindscope" / "runs").glob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_mutant_of_a_module_differs_and_parses(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    for mutant in find_mutants(source):
        assert mutant.text != source
        assert ast.dump(ast.parse(mutant.text)) != ast.dump(ast.parse(source))


def test_what_a_person_reads_and_what_types_say_is_left_alone() -> None:
    source = '''
def f(a: int = 1) -> Literal[2]:
    """3 < 4."""
    print(f"{a + 5} rows")
'''
    assert [(mutant.line, mutant.change) for mutant in find_mutants(source)] == [(2, "1 → 2")]
