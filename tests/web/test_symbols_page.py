"""Page Symbols over the wire: curves are the datasets' numbers, kernels the command's, and no run is needed for either."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from fastapi.testclient import TestClient

from bindscope.studies.framework.experiments import SHIPPED_DATASETS, find_experiment
from bindscope.studies.framework.verify import verify
from bindscope.studies.symbols.published import CURVES
from bindscope.theory.kernel_learnable import learnable
from bindscope.web.app import create_app
from bindscope.web.lab import Lab
from bindscope.web.pages import symbols
from bindscope.web.stored import Stored
from bindscope.web.symbols import study_subject
from web.made_symbols import expected_loss, write_dataset


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("same-different", "copy", "width", "shape"):
        write_dataset(name, folder)
    return folder


@pytest.fixture(scope="module")
def client(directory: Path) -> Iterator[TestClient]:
    """A lab without a single run."""
    with TestClient(create_app(Lab([], directory), (symbols.PAGE,)), base_url="http://127.0.0.1:8420") as opened:
        yield opened


def read(client: TestClient, path: str) -> dict[str, Any]:
    answer = client.get(f"/api/symbols/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def column(body: dict[str, Any], name: str) -> list[Any]:
    return (body["variables"].get(name) or body["coords"][name])["values"]


def test_a_curve_holds_the_mean_of_its_seeds_and_an_interval_around_it(client: TestClient) -> None:
    body = read(client, "curves/same-different.json")
    rows = list(zip(*(column(body, name) for name in ("model", "n", "mean", "low", "high", "seeds")), strict=True))
    assert len(rows) == sum(not variant.full for variant in find_experiment("same-different").variants)
    for model, n, mean, low, high, seeds in rows:
        seeds_of = [min(1.0, expected_loss({"model": model, "n": n}) + seed / 100) for seed in range(2)]
        assert mean == pytest.approx(np.mean(seeds_of), abs=1e-6)
        assert low <= mean <= high
        assert seeds == 2
    assert body["attrs"]["measure"] == "test loss"
    assert "transformer" in body["attrs"]["answer"].lower()


def test_the_papers_points_are_those_that_are_published(client: TestClient) -> None:
    body = read(client, "curves/same-different.json")
    found = list(zip(column(body, "paper_model"), column(body, "paper_n"), column(body, "paper_value"), strict=True))
    told = [(model, n, value) for model, points in CURVES["same-different"].items() for n, value in points.items()]
    assert sorted(found) == [(model, n, pytest.approx(value)) for model, n, value in sorted(told)]


def test_wider_models_that_need_more_to_copy_are_seen_to(client: TestClient) -> None:
    body = read(client, "curves/copy.json")
    names = ("solved_model", "solved_width", "solved_n")
    rows = list(zip(*(column(body, name) for name in names), strict=True))
    first = {width: n for model, width, n in rows if model == "plain"}
    solved = {width: n for width, n in first.items() if n is not None}
    assert list(solved.values()) == sorted(solved.values())
    assert max(solved.values()) > min(solved.values())
    assert {n for model, _, n in rows if model == "both"} == {32}
    assert body["attrs"]["measure"] == "test error"


def test_what_nobody_has_trained_says_how_and_appears_when_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bindscope.studies.framework.experiments.SHIPPED_DATASETS", tmp_path / "nothing")
    stored = Stored(Lab([], tmp_path))
    (resource,) = (each for each in symbols.PAGE.resources if "curves" in each.path)
    assert b"bindscope experiment majority" in stored.read(resource, {"experiment": "majority"})
    write_dataset("majority", tmp_path)
    found = stored.read(resource, {"experiment": "majority"})
    assert b'"absent"' not in found
    write_dataset("majority", tmp_path, seeds=3)
    assert stored.read(resource, {"experiment": "majority"}) != found


def test_every_listed_experiment_and_task_has_its_file_in_a_static_copy(client: TestClient, directory: Path) -> None:
    lab = Lab([], directory)
    paths = {
        r.path.format(**p) for r in symbols.PAGE.resources if r.media == "application/json" for p in r.instances(lab)
    }
    names, kinds = (column(read(client, "experiments.json"), name) for name in ("experiment", "kind"))
    assert {"same-different", "copy", "shape", "learnability", "gpt2"} <= set(names)
    assert {f"symbols/curves/{name}.json" for name in names} <= paths
    assert set(kinds) == {"n", "width", "setting", "task"}
    tasks = read(client, "tasks.json")
    stored = {task for task, kept in zip(column(tasks, "task"), column(tasks, "stored"), strict=True) if kept}
    assert {f"symbols/kernel/{task}.json" for task in stored} <= paths
    assert "majority-8" not in stored


def test_the_kernel_is_what_the_theory_says_and_a_named_task_is_stored(client: TestClient) -> None:
    asked = client.post("/api/live/kernel", json={"templates": ["ABA", "ABB"], "labels": [1, -1]}).json()
    report = learnable(["ABA", "ABB"], [1, -1])
    assert column(asked, "kernel") == pytest.approx(report.matrix.value.ravel().tolist(), rel=1e-5)
    assert column(asked, "eigenvalue_low") == pytest.approx(report.eigenvalues.low.tolist(), rel=1e-5)
    assert (asked["attrs"]["verdict"], asked["attrs"]["why"]) == (report.verdict, report.why)
    assert asked["command"] == "bindscope kernel ABA ABB --labels=1,-1"
    stored = read(client, "kernel/aba-abb.json")
    assert stored["variables"] == asked["variables"]
    assert stored["command"] == "bindscope kernel aba-abb"


def test_overlapping_templates_are_shown_a_sequence_that_matches_both(client: TestClient) -> None:
    asked = client.post("/api/live/kernel", json={"templates": ["AB", "Ax"]}).json()
    assert asked["attrs"]["verdict"] == "not covered"
    assert column(asked, "overlap_sequence") == ["s0 x"]
    drawn = client.post("/api/live/samples", json={"templates": ["AB", "Ax"], "n": 3}).json()
    assert "both match s0 x" in column(drawn, "problem_text")[0]
    assert all(text.endswith(" x") for text in column(drawn, "sequence")[3:])


@pytest.mark.parametrize(
    ("operation", "question", "status", "sentence"),
    [
        ("kernel", {"templates": ["AA", "BB"]}, 400, "equivalent"),
        ("kernel", {"templates": ["A" * 11]}, 400, "at most 10 tokens"),
        ("kernel", {"templates": ["A"] * 9}, 422, "at most 8"),
        ("kernel", {"templates": ["AA", "AB"], "labels": [1]}, 400, "as many labels"),
        ("kernel", {"templates": ["AA", "AB"], "points": 10**6}, 422, "1024"),
        ("kernel", {"templates": ["AA"], "beta": 1e9}, 422, "10"),
        ("kernel", {"templates": ["AAA", "AAB", "ABA", "ABB", "ABC"], "activation": "gelu"}, 400, "bindscope kernel"),
        ("samples", {"templates": ["'"]}, 400, "closing '"),
        ("samples", {"templates": ["A"], "n": 10**9}, 422, "50"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(
    client: TestClient, operation: str, question: dict[str, Any], status: int, sentence: str
) -> None:
    answer = client.post(f"/api/live/{operation}", json=question)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


def test_claims_are_judged_without_a_run_and_have_their_figures(client: TestClient) -> None:
    body = read(client, "claims.json")
    subject = study_subject(client.app.state.lab)  # type: ignore[attr-defined]
    fast = [claim for claim in subject.study.claims if claim.id in ("AS1", "AS2", "AS9")]
    rows = dict(zip(column(body, "claim"), zip(column(body, "verdict"), column(body, "reason")), strict=True))
    for judged in verify(subject.library, fast).judged:
        assert rows[judged.claim.id] == (judged.finding.verdict, judged.finding.reason)
        assert judged.finding.verdict != "not testable"


def test_what_takes_long_is_not_measured_while_a_reader_waits(client: TestClient, directory: Path) -> None:
    subject = study_subject(client.app.state.lab)  # type: ignore[attr-defined]
    slow = {name for name, result in subject.library.results.items() if result.slow}
    assert {"kernel", "copy_directions"} <= slow
    read(client, "claims.json")
    assert not [path for path in directory.rglob("*.nc") if path.stem in slow]


def test_a_claim_has_a_figure_and_another_name_has_none(client: TestClient) -> None:
    body = read(client, "claims.json")
    figures = [figure for figure in column(body, "figure") if figure]
    drawn = client.get(f"/api/{figures[0]}")
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    assert ElementTree.fromstring(drawn.text).tag.endswith("svg")
    assert client.get("/api/symbols/claims/AS99.svg").status_code == 404


@pytest.mark.parametrize("path", ["curves/nope.json", "kernel/nope.json", "kernel/majority-8.json", "claims/x.svg"])
def test_an_unknown_name_is_missing(client: TestClient, path: str) -> None:
    assert client.get(f"/api/symbols/{path}").status_code == 404


@pytest.mark.skipif(not (SHIPPED_DATASETS / "same-different.nc").is_file(), reason="no curves are shipped")
def test_shipped_curves_can_all_be_read(tmp_path: Path) -> None:
    stored = Stored(Lab([], tmp_path))
    (resource,) = (each for each in symbols.PAGE.resources if "curves" in each.path)
    for parameters in resource.instances(Lab([], tmp_path)):
        assert stored.read(resource, parameters)
