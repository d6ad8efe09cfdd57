"""The constructed run is served beside the others, and no page breaks on a run with one checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest
from fastapi.testclient import TestClient

from bindscope.runs.construct import construct_run
from bindscope.web.app import create_app
from bindscope.web.lab import Lab, Missing
from bindscope.web.pages import PAGES
from bindscope.web.stored import Stored

NAME = "binding-constructed"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, small_run: Path) -> Lab:
    folder = tmp_path_factory.mktemp("constructed")
    construct_run(folder / "runs" / NAME, lines=5, max_depth=2, n=100)
    return Lab.open([small_run], folder / "kept", read_only=[small_run], watched=[folder / "runs"])


def test_it_is_listed_as_the_ideal_mechanism(lab: Lab) -> None:
    with TestClient(create_app(lab), base_url="http://localhost") as client:
        listed = {run["name"]: run for run in client.get("/api/runs.json").json()["runs"]}
    assert set(listed) == {"small", NAME}
    ideal = listed[NAME]
    assert ideal["description"].startswith("The ideal mechanism")
    assert (ideal["steps"], ideal["total_steps"], ideal["accuracy"]) == ([0], 0, 1)


def test_every_body_of_it_can_be_read_or_says_why_not(lab: Lab) -> None:
    lab.look()
    stored, read, refused = Stored(lab), [], []
    for resource in (resource for page in PAGES for resource in page.resources):
        for parameters in resource.instances(lab):
            if parameters.get("run") != NAME:
                continue
            try:
                content = stored.read(resource, parameters)
            except Missing as reason:
                refused.append((resource.path, str(reason)))
            else:
                read.append(resource.path)
                assert content
    assert {"runs/{run}/run.json", "runs/{run}/trajectory.json"} <= set(read)
    assert all(reason.endswith((".", "'")) for _, reason in refused), refused


def test_it_answers_live_and_its_patch_grid_shows_the_written_circuit(lab: Lab) -> None:
    """a=5, b=a, #b: the value is at the digit until layer 1 reads it, at b's right-hand side for layer 2, then at the query."""
    program, counterfactual = "a=5;b=a;#b:", "a=8;b=a;#b:"
    with TestClient(create_app(lab), base_url="http://localhost") as client:
        predicted = client.post("/api/live/predict", json={"run": NAME, "steps": [0], "program": program})
        assert predicted.status_code == 200, predicted.text
        question = {"run": NAME, "step": 0, "program": program, "counterfactual": counterfactual, "grid": "residual"}
        answer = client.post("/api/live/grid", json=question)
    assert answer.status_code == 200, answer.text
    body, *parts = map(orjson.loads, answer.text.splitlines())
    labelled = body["variables"]["success"]
    values = list(labelled["values"])
    for part in parts:
        sent = part["variables"]["success"]
        values[part["at"] : part["at"] + len(sent)] = sent
    grid = np.array(values).reshape([body["sizes"][dim] for dim in labelled["dims"]])
    if labelled["dims"][0] == "position":
        grid = grid.T
    digit, right_hand_side, query = 2, 6, 9  # columns
    assert {(int(layer), int(position)) for layer, position in np.argwhere(grid == 1)} == {
        (0, digit), (1, digit), (2, right_hand_side), (3, query),
    }  # fmt: skip
