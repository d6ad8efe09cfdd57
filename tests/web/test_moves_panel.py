"""Moves over the wire: what grows line by line ends as the answer in Python; bad questions are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from bindscope.questions.moves import Moves
from bindscope.runs.locate import find_run
from bindscope.web.app import create_app
from bindscope.web.asking import opened
from bindscope.web.lab import Lab

RUN = "binding-plain"
PAIR = {"program": "a=2\nb=7\nc=a\nd=b\n#c:", "counterfactual": "a=5\nb=7\nc=a\nd=b\n#c:"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = Path(find_run(RUN))
    return Lab.open([folder], tmp_path_factory.mktemp("kept"), read_only=[folder])


@pytest.fixture(scope="module")
def client(lab: Lab) -> TestClient:
    return TestClient(create_app(lab), base_url="http://127.0.0.1")


def operation_of(asked: dict) -> str:
    return "moves" if "program" in asked else "meanmoves"


@pytest.mark.parametrize("asked", [PAIR, {"n": 4, "depth": 2, "seed": 3}])
def test_the_last_line_completes_what_python_answers(lab: Lab, client: TestClient, asked: dict) -> None:
    run = lab.find(RUN)
    asked = {"run": RUN, "step": run.steps[-1], **asked}
    body, *parts = map(json.loads, client.post(f"/api/live/{operation_of(asked)}", json=asked).text.splitlines())
    expected = Moves(**asked).answer(opened(run))
    assert len(parts) == expected.sizes["what"] + 1
    for name in ("held", "together", "head", "attended", "lost"):
        sent = np.array([np.nan if value is None else value for value in parts[-1]["variables"][name]])
        np.testing.assert_allclose(sent, expected[name].values.ravel(), atol=2e-4)
        assert body["variables"][name]["dims"] == list(expected[name].dims)
    assert body["command"].startswith(f"bindscope moves {RUN}")
    assert body["provenance"]["n"] == expected.attrs["n_pairs"]
    assert bool(body["attrs"]["pointers"]) == ("program" in asked)


@pytest.mark.parametrize(
    ("wrong", "status"),
    [({"n": 1}, 422), ({"n": 65}, 422), ({"depth": 9}, 400), ({**PAIR, "counterfactual": PAIR["program"]}, 400)],
)
def test_what_cannot_be_asked_is_refused(client: TestClient, lab: Lab, wrong: dict, status: int) -> None:
    asked = {"run": RUN, "step": lab.find(RUN).steps[-1], **wrong}
    assert client.post(f"/api/live/{operation_of(asked)}", json=asked).status_code == status
