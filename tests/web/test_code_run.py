"""A language model that was asked programs as text is served like any other run on programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from fastapi.testclient import TestClient

from bindscope.cli.main import run
from bindscope.measures.binding.patching import Patch, patch_model
from bindscope.tasks.binding import read_pair
from bindscope.web.app import create_app
from bindscope.web.lab import Lab, Missing
from bindscope.web.pages import PAGES
from bindscope.web.stored import Stored
from studies.code_series import write_series

NAME, STEP = "small", 10
PROGRAM, OTHER = "c=7;d=3;a=5;b=a;e=b;#e:", "c=7;d=3;a=8;b=a;e=b;#e:"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = tmp_path_factory.mktemp("code")
    series = write_series(folder / "series")
    asked = ["--family", "code", "--as", NAME, "--n", "60", "--set", "lines=5", "--set", "form=let", "--link"]
    assert run(["import", str(series), *asked, "--out", str(folder)]) == 0
    return Lab.open([folder / NAME], folder / "kept", read_only=[folder / NAME])


@pytest.fixture(scope="module")
def client(lab: Lab) -> Iterator[TestClient]:
    with TestClient(create_app(lab), base_url="http://localhost") as opened:
        yield opened


def ask(client: TestClient, operation: str, **question: object) -> str:
    response = client.post(f"/api/live/{operation}", json={"run": NAME, **question})
    assert response.status_code == 200, response.text
    return response.text


def test_every_body_can_be_read_or_says_why_not(lab: Lab) -> None:
    stored, read, refused = Stored(lab), set(), []
    for resource in (resource for page in PAGES for resource in page.resources):
        for parameters in resource.instances(lab):
            try:
                assert stored.read(resource, parameters)
            except Missing as reason:
                refused.append(str(reason))
            else:
                read.add(resource.path)
    assert all(reason.endswith((".", "'", ")")) for reason in refused), refused
    assert {"runs/{run}/trajectory.json", "runs/{run}/programs.json", "runs/{run}/grid-chain.json"} <= read


def test_a_live_grid_is_over_the_programs_own_positions(client: TestClient, lab: Lab) -> None:
    lines = ask(client, "grid", program=PROGRAM, counterfactual=OTHER, step=STEP, grid="residual").splitlines()
    body, *parts = map(json.loads, lines)
    assert (body["sizes"]["position"], body["attrs"]["source_answer"]) == (23, "8")
    assert body["coords"]["token"]["values"][:4] == ["␣c", "␣=", "␣7", "let"]
    values = np.full(23 * 3, np.nan)
    for part in parts:
        values[part["at"] : part["at"] + len(part["variables"]["kl"])] = part["variables"]["kl"]
    opened = lab.find(NAME)
    *_, pairs = read_pair(opened.run.config.task, PROGRAM, OTHER)  # type: ignore[arg-type]
    expected = patch_model(opened.model(STEP), pairs, Patch("residual")).kl.isel(pair=0).transpose("position", "layer")
    np.testing.assert_allclose(values.reshape(23, 3), expected, atol=1e-5)


def test_its_programs_are_answered_live(client: TestClient) -> None:
    predicted = json.loads(ask(client, "predict", program=PROGRAM, steps=[0, STEP]))
    outputs = predicted["coords"]["output"]["values"]
    assert outputs[:10] == list("0123456789")
    assert outputs[-1] == "other"
    sites = ["L1.resid_pre@10", "L2.H1@query"]
    patched = json.loads(ask(client, "patch", program=PROGRAM, counterfactual=OTHER, steps=[STEP], sites=sites))
    assert patched["sizes"] == {"step": 1, "condition": 3, "output": len(outputs)}
    attention = json.loads(ask(client, "attention", program=PROGRAM, step=STEP))
    assert attention["sizes"]["query"] == attention["sizes"]["key"] == 23
    ablated = json.loads(ask(client, "ablate", program=PROGRAM, step=STEP, sites=["L0.H0"], kind="mean"))
    assert ablated["sizes"]["output"] == len(outputs)
    assert json.loads(ask(client, "lens", program=PROGRAM, step=STEP))["sizes"]["position"] == 23
