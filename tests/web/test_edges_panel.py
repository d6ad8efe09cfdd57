"""Edges over the wire: what grows line by line ends as the answer in Python, with its sentences; bad questions are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from bindscope.interventions.edge_reading import tabulate_edges, tell_circuit, tell_error
from bindscope.questions.edges import Edges
from bindscope.web.app import create_app
from bindscope.web.asking import opened
from bindscope.web.lab import Lab
from bindscope.web.pages.patch import MOST_EDGES, lay_out_edges
from studies.made_runs import make_run

FEW = {"n": 8, "points": 1, "checked": 4, "random": 2, "depth": 2}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = tmp_path_factory.mktemp("runs")
    path: Path = make_run(folder / "made").path
    return Lab.open([path], folder / "kept")


@pytest.fixture(scope="module")
def client(lab: Lab) -> TestClient:
    return TestClient(create_app(lab), base_url="http://127.0.0.1")


@pytest.mark.parametrize("estimate", ["gradient", "atp-star"])
def test_the_last_line_completes_what_python_answers(lab: Lab, client: TestClient, estimate: str) -> None:
    run = lab.find("made")
    asked = {"run": "made", "step": run.steps[-1], "estimate": estimate, **FEW}
    lines = client.post("/api/live/edges", json=asked).text.splitlines()
    body, *parts = map(json.loads, lines)
    question = Edges(**asked)
    report = question.answer(opened(run))
    expected = lay_out_edges(report)
    assert len(parts) == FEW["checked"] + report.sizes["size"]
    assert all(value is None for value in body["variables"]["kept"]["values"])
    assert body["variables"]["finding"]["values"] == [""]
    for name in expected.data_vars:
        assert len(parts[-1]["variables"][name]) == len(body["variables"][name]["values"])
    for name in ("effect", "exact", "part_exact", "faithfulness", "random_most"):
        sent = np.array([np.nan if value is None else value for value in parts[-1]["variables"][name]])
        np.testing.assert_allclose(sent, expected[name].values.ravel(), atol=2e-4)
    assert parts[-1]["variables"]["finding"] == [tell_circuit(report)]
    assert parts[-1]["variables"]["error"] == [tell_error(report)]
    assert body["command"].startswith("bindscope edges made")
    assert ("--method atp-star" in body["command"]) == (estimate == "atp-star")
    assert len(body["coords"]["sender"]["values"]) == tabulate_edges(report, MOST_EDGES).sizes["edge"]


@pytest.mark.parametrize(
    ("wrong", "status"), [({"depth": 9}, 400), ({"n": 2}, 422), ({"estimate": "magic"}, 422), ({"points": 1000}, 422)]
)
def test_what_cannot_be_asked_is_refused(client: TestClient, lab: Lab, wrong: dict[str, object], status: int) -> None:
    asked = {"run": "made", "step": lab.find("made").steps[-1], **FEW, **wrong}
    assert client.post("/api/live/edges", json=asked).status_code == status
