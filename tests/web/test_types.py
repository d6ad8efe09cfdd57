"""The page's types are those of the API: the committed files are what the code gives."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bindscope.web.describe import describe_api

FRONTEND = Path(__file__).parents[2] / "frontend"


def test_the_committed_description_is_that_of_the_server() -> None:
    assert (FRONTEND / "openapi.json").read_bytes() == describe_api(), "run 'make types'"


def test_the_committed_types_are_made_from_the_description(tmp_path: Path) -> None:
    script = FRONTEND / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
    node = shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")
    if node is None or not script.is_file():
        pytest.skip("the page's tools are not installed")
    made = tmp_path / "schema.d.ts"
    subprocess.run([node, script, FRONTEND / "openapi.json", "--output", made], check=True, capture_output=True)
    assert made.read_text() == (FRONTEND / "src" / "api" / "schema.d.ts").read_text(), "run 'make types'"
