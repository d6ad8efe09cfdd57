"""A series of patch grids on the page: read step by step while it grows, one pair at a time, and never whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from bindscope.questions.grids import Grids
from bindscope.runs import results
from bindscope.tasks.binding import parse_program
from bindscope.web.app import create_app
from bindscope.web.asking import opened
from bindscope.web.grid_series import GRID_SERIES
from bindscope.web.lab import Lab, LabRun
from studies.made_runs import make_run

STEPS = (0, 1450, 2000)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab.open([make_run(tmp_path / "made", steps=STEPS).path])


@pytest.fixture
def client(lab: Lab) -> Iterator[TestClient]:
    with TestClient(create_app(lab), base_url="http://127.0.0.1:8420") as at:
        yield at


def measure(run: LabRun, steps: tuple[int, ...], **others: object) -> Grids:
    question = Grids(run="made", n=6, steps=steps, **others)  # type: ignore[arg-type]
    question.answer(opened(run), run.results_folders, jobs=1)
    return question


def read(client: TestClient, path: str) -> dict:
    response = client.get(f"/api/runs/made/{path}")
    assert response.status_code == 200, response.text
    return response.json()


def test_the_page_follows_a_series_that_grows(client: TestClient, lab: Lab) -> None:
    assert read(client, "grid-series.json")["sizes"]["series"] == 0
    run, version = lab.find("made"), lab.find("made").version
    measure(run, (0, 1450))
    listed = read(client, "grid-series.json")
    assert listed["coords"]["series"]["values"] == ["residual-n6-seed0"]
    assert listed["variables"]["measured"]["values"] == [True, True, False]
    assert run.version != version
    version = run.version
    measure(run, (2000,))
    assert run.version != version
    assert read(client, "grid-series.json")["variables"]["measured"]["values"] == [True, True, True]


def test_a_step_is_its_means_and_a_pair_its_own_grid(client: TestClient, lab: Lab) -> None:
    run = lab.find("made")
    found = measure(run, (2000,)).find(opened(run), run.results_folders)
    body = read(client, f"grid-series/{found.question.name}/2000.json")
    np.testing.assert_allclose(
        np.array(body["variables"]["success"]["values"]), found.summary([2000]).success.values.ravel(), atol=1e-4
    )
    assert body["provenance"]["n"] == 6
    assert body["command"] == "bindscope grids made --n 6"
    pair = read(client, f"grid-series/{found.question.name}/2000/3.json")
    stored = found.pairs(2000, pair=3)
    np.testing.assert_array_equal(pair["variables"]["success"]["values"], stored.pair_success.values.ravel())
    base, other = (parse_program(pair["attrs"][name].replace(";", "\n")) for name in ("program", "source"))
    tokens = found.question.draw(opened(run).task).pairs
    assert list(base.tokens) == tokens.base_tokens[3].tolist()
    assert list(other.tokens) == tokens.counterfactual_tokens[3].tolist()
    assert len(pair["coords"]["token"]["values"]) == pair["sizes"]["position"]


def test_the_page_reads_no_more_than_it_shows(client: TestClient, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    name = measure(lab.find("made"), STEPS).name
    asked: list[tuple[object, object]] = []
    read_part = results.read_part

    def watch(path: Path, names: object, at: dict) -> object:
        asked.append((names, dict(at)))
        return read_part(path, names, at)  # type: ignore[arg-type]

    monkeypatch.setattr("bindscope.runs.series.read_part", watch)
    read(client, "grid-series.json")
    assert not asked
    read(client, f"grid-series/{name}/1450.json")
    read(client, f"grid-series/{name}/1450/2.json")
    means, pair = asked
    assert not any(each.startswith("pair_") for each in means[0])  # type: ignore[attr-defined]
    assert pair == (["pair_success", "pair_logit_difference"], {"pair": 2})


def test_what_is_not_there_is_told(client: TestClient, lab: Lab) -> None:
    run = lab.find("made")
    name = measure(run, (0,)).name
    assert client.get("/api/runs/made/grid-series/other/0.json").status_code == 404
    assert client.get(f"/api/runs/made/grid-series/{name}/0/6.json").status_code == 404
    assert client.get(f"/api/runs/made/grid-series/{name}/0/x.json").status_code == 404
    assert "is not measured yet" in read(client, f"grid-series/{name}/2000.json")["absent"]
    path = run.results_folders[0] / "grid-series" / name / "step_00002000.nc"
    path.write_bytes(b"half a file")
    assert "step_00002000.nc: this result is damaged" in read(client, f"grid-series/{name}/2000.json")["absent"]


def test_a_static_copy_has_the_means_of_every_measured_step(lab: Lab) -> None:
    name = measure(lab.find("made"), (0, 2000)).name
    written = [list(resource.instances(lab)) for resource in GRID_SERIES]
    assert written == [[{"run": "made"}], [{"run": "made", "series": name, "step": s} for s in ("0", "2000")], []]
