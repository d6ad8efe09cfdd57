from __future__ import annotations

from pathlib import Path

import pytest

from bindscope.cli.main import run
from cli.small_run import small_options


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a very small model, in a directory of its own."""
    workplace = tmp_path_factory.mktemp("trained")
    arguments = ["train", "binding-tiny", "--name", "small", "--out", str(workplace / "runs"), "--steps", "12"]
    assert run([*arguments, "--threads", "1", *small_options()]) == 0
    return workplace / "runs" / "small"


@pytest.fixture
def workplace(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory above ./runs with the small run in it."""
    monkeypatch.chdir(trained.parents[1])
    return trained.parents[1]
