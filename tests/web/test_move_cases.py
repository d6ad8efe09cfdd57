"""What the browser's reading of moves is checked against is what Python says today."""

from __future__ import annotations

from pathlib import Path

from bindscope.web.move_cases import encode_cases

CASES = Path(__file__).parents[2] / "frontend" / "src" / "pages" / "patch" / "moves-cases.json"


def test_the_committed_cases_are_what_python_says_of_them() -> None:
    made = encode_cases()
    assert CASES.read_bytes() == made, (
        "run 'python -m bindscope.web.move_cases frontend/src/pages/patch/moves-cases.json'"
    )
