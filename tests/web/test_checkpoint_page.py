"""Behaviour over the wire: tables of any step from what is saved, equal to the measures themselves, no model run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from bindscope.cli.main import run as run_command
from bindscope.measures.binding.behaviour import behaviour_by, behaviour_by_each
from bindscope.measures.binding.confusion import confusion
from bindscope.runs.directory import Run
from bindscope.runs.locate import shipped_runs
from bindscope.studies.binding.behaviour.measure import predictions_at
from bindscope.web import kept
from bindscope.web.app import create_app
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.page import Page
from bindscope.web.pages import checkpoint
from bindscope.web.security import LOOPBACK
from studies.made_runs import make_run

NAMES = ["binding-laptop", "binding-plain"]
STEP = 600


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    paths = shipped_runs()
    return Lab.open(paths, tmp_path_factory.mktemp("kept"), read_only=paths)


@pytest.fixture(scope="module")
def client(lab: Lab) -> Iterator[TestClient]:
    with TestClient(create_app(lab, (checkpoint.PAGE,)), base_url=f"http://{LOOPBACK[0]}:8435") as opened:
        yield opened


def read(client: TestClient, path: str) -> dict:
    response = client.get(f"/api/runs/{path}")
    assert response.status_code == 200, response.text
    return response.json()


def column(body: dict, name: str) -> list:
    return (body["variables"].get(name) or body["coords"][name])["values"]


@pytest.mark.parametrize("name", NAMES)
def test_shipped_predictions_are_current_and_small(lab: Lab, name: str) -> None:
    for result in ("predictions", "importance"):
        filled = lab.find(name).library.find(result)
        assert filled is not None
        assert filled.origin == "kept"
        assert filled.path is not None
        assert filled.path.stat().st_size < 300_000


@pytest.mark.parametrize("name", NAMES)
def test_no_model_is_read_for_a_shipped_run(
    client: TestClient, name: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "checkpoint", lambda *given: pytest.fail("a model was read"))
    steps = lab.find(name).run.steps
    for step in (steps[0], steps[len(steps) // 2], steps[-1]):
        for table in ("confusion", "sources", "attributes", "importance"):
            body = read(client, f"{name}/steps/{step}/{table}.json")
            assert body["provenance"]["step"] == step
            for part in (*body["variables"].values(), *body["coords"].values()):
                assert len(part["values"]) == np.prod([body["sizes"][dim] for dim in part["dims"]])


def test_tables_are_what_the_measures_say(client: TestClient, lab: Lab) -> None:
    name = NAMES[0]
    kept = checkpoint.predictions_of(lab.find(name))
    predictions = predictions_at(kept, STEP)
    digits, lines = (read(client, f"{name}/steps/{STEP}/{table}.json") for table in ("confusion", "sources"))
    naive = confusion(predictions)
    assert column(digits, "count") == naive["count"].values.ravel().tolist()
    assert column(lines, "line_count") == naive.line_count.values.ravel().tolist()
    assert sum(column(digits, "count")) == sum(column(lines, "line_count")) == len(predictions)
    body = read(client, f"{name}/predictions.json")
    index = column(body, "step").index(STEP)
    n = body["sizes"]["program"]
    assert column(body, "predicted")[index * n : (index + 1) * n] == predictions.predicted.tolist()


def test_rows_by_attribute_are_those_of_each_attribute_alone(lab: Lab) -> None:
    predictions = predictions_at(checkpoint.predictions_of(lab.find(NAMES[0])), STEP)
    every = behaviour_by_each(predictions)
    for name in ("depth", "root_line", "line_1_right"):
        alone = behaviour_by(predictions, name)
        rows = every.isel(group=np.flatnonzero(every.attribute.values == name))
        np.testing.assert_array_equal(rows.value, alone[name])
        for variable in ("accuracy", "accuracy_low", "accuracy_high", "n"):
            np.testing.assert_array_equal(rows[variable], alone[variable])
        np.testing.assert_array_equal(rows.agreement, alone.agreement.sel(rule="line_1"))
        assert rows.n.sum() == len(predictions)


@pytest.mark.parametrize("table", ["confusion", "attributes"])
def test_the_command_of_a_panel_gives_its_numbers(client: TestClient, table: str, capsys) -> None:
    body = read(client, f"{NAMES[0]}/steps/{STEP}/{table}.json")
    words = shlex.split(body["command"])
    assert words[0] == "bindscope"
    run_command([*words[1:], "--json"])
    import json

    found = json.loads(capsys.readouterr().out)["variables"]
    if table == "confusion":
        assert np.ravel(found["count"]["values"]).tolist() == column(body, "count")
    else:
        depth = [row for row, name in enumerate(column(body, "attribute")) if name == "depth"]
        assert found["accuracy"]["values"] == pytest.approx([column(body, "accuracy")[row] for row in depth])


def test_the_python_of_a_panel_runs(client: TestClient) -> None:
    for table in ("confusion", "attributes"):
        names: dict = {}
        exec(read(client, f"{NAMES[0]}/steps/{STEP}/{table}.json")["python"], names)
        assert names["table"].attrs["n"] == 300


def test_a_run_of_ones_own_is_measured_when_asked_and_then_kept(tmp_path: Path) -> None:
    made = LabRun(make_run(tmp_path / "made"), tmp_path)
    first = checkpoint.predictions_of(made)
    assert (tmp_path / "made" / "results" / "predictions.nc").is_file()
    assert tuple(first.step.values) == made.run.steps
    assert made.library.estimate_work("predictions") == 0


def test_what_would_take_minutes_is_refused_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab([LabRun(make_run(tmp_path / "made"), tmp_path)], tmp_path)
    monkeypatch.setattr(kept, "MOST_WORK", 1.0)
    page = Page("checkpoint", checkpoint.PAGE.resources)
    with TestClient(create_app(lab, (page,)), base_url=f"http://{LOOPBACK[0]}:8435") as client:
        answer = client.get("/api/runs/made/predictions.json")
    assert "bindscope behaviour made --step all" in answer.json()["absent"]
    assert not answer.json()["variables"]


def test_a_static_copy_explains_the_last_step_of_a_run_without_a_kept_explanation(tmp_path: Path) -> None:
    run = LabRun(make_run(tmp_path / "made"), tmp_path)
    lab = Lab([run], tmp_path, live=False)
    assert "attribute" in checkpoint.read_importance(lab, run, run.steps[-1])["sizes"]
    with pytest.raises(NotMeasured, match="alone"):
        checkpoint.read_importance(lab, run, run.steps[0])


@pytest.mark.parametrize("path", ["made/predictions.json", f"{NAMES[0]}/steps/601/confusion.json"])
def test_what_is_not_there_is_said_to_be_missing(client: TestClient, path: str) -> None:
    assert client.get(f"/api/runs/{path}").status_code == 404
