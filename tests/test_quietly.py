"""The installation says how far it is, keeps its chatter in a file, and shows the end of it when it fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "release" / "quietly.py"


def quietly(log: Path, code: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(SCRIPT), "setting up", str(log), sys.executable, "-c", code]
    return subprocess.run(words, capture_output=True, text=True)


def test_what_succeeds_is_said_in_two_lines(tmp_path: Path) -> None:
    done = quietly(tmp_path / "new" / "log", "import sys; print('chatter'); print('more', file=sys.stderr)")
    assert done.returncode == 0
    assert done.stderr == ""
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["setting up …", "setting up"]
    assert set((tmp_path / "new" / "log").read_text().split()) == {"chatter", "more"}


def test_what_fails_shows_its_last_lines_and_its_exit_code(tmp_path: Path) -> None:
    failed = quietly(tmp_path / "log", "print('\\n'.join(map(str, range(100)))); raise SystemExit(3)")
    assert failed.returncode == 3
    shown = failed.stderr.splitlines()
    assert "99" in shown
    assert "42" not in shown
    assert str(tmp_path / "log") in shown[-1]


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        ("Collecting numpy>=1.26 (from bindscope==0.1.0)", "looking up numpy"),
        ("  Downloading torch-2.13.0-cp311-cp311-linux_x86_64.whl (190.1 MB)", "fetching torch (190.1 MB)"),
        ("  Building editable for bindscope (pyproject.toml): started", "building the page of bindscope"),
        ("Installing collected packages: numpy, torch", "unpacking the packages"),
        ("Something else", ""),
    ],
)
def test_stages_are_told_by_what_pip_says(line: str, stage: str) -> None:
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import quietly; print(quietly.stage_of({line!r}))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == stage
