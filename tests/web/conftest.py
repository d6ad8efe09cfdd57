from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from bindscope.cli.main import run
from bindscope.runs.locate import shipped_runs
from bindscope.web.app import create_app
from bindscope.web.lab import Lab
from cli.small_run import small_options


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a very small model; read only, please."""
    out = tmp_path_factory.mktemp("web")
    arguments = ["train", "binding-tiny", "--name", "small", "--out", str(out), "--steps", "12", "--threads", "1"]
    assert run([*arguments, *small_options()]) == 0
    return out / "small"


@pytest.fixture(scope="session")
def sum_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on modular addition, of a model of the published shape but very small; read only, please."""
    out = tmp_path_factory.mktemp("web")
    arguments = ["train", "assign-add", "--name", "sums", "--out", str(out), "--steps", "30", "--threads", "1"]
    settings = {
        "task.modulus": 11,
        "task.n_variables": 5,
        "model.d_model": 16,
        "model.d_head": 16,
        "model.d_mlp": 32,
        "training.batch_size": 64,
        "training.evaluate_every": 10,
        "training.evaluation_size": 60,
        "training.save_every": 10,
        "training.checkpoints.every": 10,
    }
    assert run([*arguments, *(word for key, value in settings.items() for word in ("--set", f"{key}={value}"))]) == 0
    return out / "sums"


@pytest.fixture
def lab(small_run: Path, tmp_path: Path) -> Lab:
    return Lab.open([small_run], kept_in=tmp_path / "kept", read_only=[small_run])


@pytest.fixture(scope="session")
def app(small_run: Path, tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """An application that shows the small run, for tests that change nothing."""
    return create_app(Lab.open([small_run], kept_in=tmp_path_factory.mktemp("kept"), read_only=[small_run]))


@pytest.fixture(scope="session")
def shipped_lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """The shipped runs; what is made of them is saved elsewhere."""
    paths = shipped_runs()
    return Lab.open(paths, tmp_path_factory.mktemp("kept"), read_only=paths)


@pytest.fixture(scope="session")
def shipped_client(shipped_lab: Lab) -> Iterator[TestClient]:
    """A browser at a server of the shipped runs."""
    with TestClient(create_app(shipped_lab), base_url="http://127.0.0.1:8420") as opened:
        yield opened
