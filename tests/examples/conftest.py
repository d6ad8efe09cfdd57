"""Families of others, each test with a registry of its own: what one test loads no other test sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bindscope import families
from bindscope.cli.main import run

ROOT = Path(__file__).parents[2]
RECALL = f"{ROOT}/examples/recall.py:RecallFamily"


@contextmanager
def alone() -> Iterator[None]:
    """Inside, only the families that come with Bindscope are known at first; afterwards all is as it was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(families, "_registry", families._Registry())
        patch.setenv(families.VARIABLE, "")
        families.installed_families.cache_clear()
        yield
    families.installed_families.cache_clear()


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    with alone():
        yield


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the example family, trained by the command line in a few seconds."""
    folder = tmp_path_factory.mktemp("runs")
    options = ["--steps", "24", "--set", "training.evaluate_every=6", "--set", "training.evaluation_size=100"]
    with alone():
        assert run(["train", "--family", RECALL, "--out", str(folder), "--threads", "1", *options]) == 0
    return folder / "recall-small"
