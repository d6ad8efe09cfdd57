"""The browser writes every question as Python does, from the same table."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bindscope.questions.question import Question
from questions.asked import questions

FRONTEND = Path(__file__).parents[2] / "frontend"
ROLLDOWN = FRONTEND / "node_modules" / "rolldown" / "bin" / "cli.mjs"

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="the browser's code is run with Node"),
    pytest.mark.skipif(not ROLLDOWN.is_file(), reason="the front end is not installed: npm ci in frontend/"),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the browser's renderer as one module."""
    folder = tmp_path_factory.mktemp("render")
    bundle = [str(FRONTEND / "src/api/render.ts"), "--format", "esm", "--file", str(folder / "render.mjs")]
    subprocess.run(["node", str(ROLLDOWN), *bundle], cwd=FRONTEND, check=True, capture_output=True)
    return folder


@settings(deadline=None, max_examples=8, suppress_health_check=list(HealthCheck))
@given(asked=st.lists(questions(), min_size=20, max_size=60))
def test_the_browser_writes_a_question_as_python_does(directory: Path, asked: list[Question]) -> None:
    rows = [(type(question).__name__, question.values()) for question in asked]
    (directory / "questions.json").write_text(json.dumps(rows))
    files = [directory / "render.mjs", directory / "questions.json", directory / "written.json"]
    script = Path(__file__).parent / "render_questions.mjs"
    subprocess.run(["node", str(script), *map(str, files)], check=True, capture_output=True)
    written = json.loads((directory / "written.json").read_text())
    assert written == [{"command": each.command(), "python": each.python()} for each in asked]
