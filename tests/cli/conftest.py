from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bindscope.cli.main import run

SMALL = {
    "task.lines": 4,
    "task.max_depth": 2,
    "model.n_layers": 2,
    "model.d_model": 16,
    "model.d_head": 4,
    "model.d_mlp": 16,
    "training.batch_size": 8,
    "training.evaluate_every": 4,
    "training.evaluation_size": 50,
    "training.save_every": 4,
    "training.checkpoints.every": 4,
    "training.checkpoints.per_octave": 0,
    "training.stop_at": "none",
}


def small_options(**more: object) -> list[str]:
    """Options that shrink a binding preset to a fraction of a second."""
    settings = {**SMALL, **{key.replace("__", "."): value for key, value in more.items()}}
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a very small model, in a directory of its own."""
    workplace = tmp_path_factory.mktemp("trained")
    arguments = ["train", "binding-tiny", "--name", "small", "--out", str(workplace / "runs"), "--steps", "12"]
    assert run([*arguments, "--threads", "1", *small_options()]) == 0
    return workplace / "runs" / "small"


@pytest.fixture
def workplace(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory above ./runs with the small run in it."""
    monkeypatch.chdir(trained.parents[1])
    yield trained.parents[1]
