"""Curves side by side over the wire: the same numbers as in Python, with what would measure the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bindscope
from bindscope.web.body import Body, encode
from bindscope.web.lab import Lab
from bindscope.web.pages import development
from studies.made_runs import make_run


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "made").path


def test_the_page_has_the_curves_of_the_notebook(path: Path, tmp_path: Path) -> None:
    lab = Lab.open([path], tmp_path)
    body = Body.model_validate_json(encode(development.read_development(lab, lab.find("made"))))
    dataset = bindscope.open_run(path).development()
    assert body.coords["curve"].values == dataset.curve.values.tolist()
    for name in ("value", "turned_at"):
        sent = np.array(body.variables[name].values, dtype=float)
        np.testing.assert_allclose(sent, dataset[name].values.ravel(), rtol=1e-6)
    assert body.command.startswith("bindscope development made")
    assert ("--measure" in body.command) == bool(dataset.attrs["missing"])
