"""What a command printed, or the one sentence with which it refused."""

from __future__ import annotations

import pytest

from bindscope.cli.main import run


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints, after it ended well."""
    code = run(list(arguments))
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence with which a command refuses; it has printed nothing else."""
    assert run(list(arguments)) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    return captured.err.removeprefix("bindscope: ").strip()
