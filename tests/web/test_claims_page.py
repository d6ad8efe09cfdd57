"""Claims over the wire are what ``verify`` says, figures are whole files, and nothing is measured on the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fastapi.testclient import TestClient

from bindscope.runs.directory import Run
from bindscope.runs.locate import shipped_runs
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import find_study, judge_kept, verify
from bindscope.web.app import create_app
from bindscope.web.claims import NOT_MEASURED, judge_once
from bindscope.web.lab import Lab, LabRun
from bindscope.web.pages import claims
from bindscope.web.security import LOOPBACK
from studies.made_runs import make_run

NAME = "binding-plain"
STUDY = find_study("binding")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    paths = shipped_runs()
    directory = tmp_path_factory.mktemp("kept")
    return Lab(
        [*Lab.open(paths, directory, paths).runs.values(), LabRun(make_run(directory / "made"), directory)], directory
    )


@pytest.fixture(scope="module")
def client(lab: Lab) -> Iterator[TestClient]:
    with TestClient(create_app(lab, (claims.PAGE,)), base_url=f"http://{LOOPBACK[0]}:8435") as opened:
        yield opened


@pytest.fixture(scope="module")
def body(client: TestClient) -> dict:
    return client.get(f"/api/runs/{NAME}/claims.json").json()


def column(body: dict, name: str) -> list:
    return body["variables"][name]["values"]


def test_a_claim_is_judged_once_for_the_same_results(lab: Lab) -> None:
    library, claim = lab.find(NAME).library, STUDY.find_claim("VB4")
    judged = judge_once(library, claim)
    assert not isinstance(judged, tuple)
    assert judge_once(library, claim) is judged
    assert judge_once(library, replace(claim, title="another")) is not judged
    (name, *_) = claim.results
    before = library.filled[name]
    assert before.dataset is not None
    try:
        library.filled[name] = replace(before, dataset=before.dataset.copy())
        again = judge_once(library, claim)
        assert again is not judged
        assert isinstance(again, type(judged))
        assert again.finding == judged.finding
    finally:
        library.filled[name] = before


def test_the_table_is_what_verify_says(lab: Lab, body: dict, tmp_path: Path) -> None:
    run = lab.find(NAME).run
    library = Library(run, STUDY.results, tmp_path, (run.path / "results",), runs_directory=tmp_path)
    verification = verify(library, STUDY.claims)
    assert column(body, "verdict") == [judged.finding.verdict for judged in verification.judged]
    assert column(body, "reason") == [judged.finding.reason for judged in verification.judged]
    said = [
        (judged.claim.id, kind, quantity.label, quantity.number)
        for judged in verification.judged
        for kind, quantities in (("found", judged.finding.quantities), ("control", judged.finding.control))
        for quantity in quantities
    ]
    names = ("quantity_of", "quantity_kind", "quantity_label", "quantity_text")
    assert list(zip(*(column(body, name) for name in names), strict=True)) == said
    assert not any(tmp_path.iterdir())  # everything was saved


def test_intervals_hold_their_value(body: dict) -> None:
    rows = zip(*(column(body, f"quantity_{name}") for name in ("low", "value", "high")), strict=True)
    held = [low <= value <= high for low, value, high in rows if None not in (low, value, high)]
    assert len(held) > 10
    assert all(held)


def test_a_figure_is_an_svg_of_its_own_with_words(client: TestClient, body: dict) -> None:
    claim = 0
    response = client.get(f"/api/{column(body, 'figure')[claim]}")
    assert response.headers["content-type"].startswith("image/svg+xml")
    root = ElementTree.fromstring(response.text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None
    assert column(body, "reason")[claim] in str(title.text)
    used = {word.split(")")[0] for word in response.text.split("var(")[1:]}
    assert used
    assert all(f"{name}:" in response.text for name in used)


def test_a_run_just_trained_is_told_to_measure_and_nothing_is_measured_here(
    client: TestClient, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "checkpoint", lambda *given: pytest.fail("a model was read"))
    body = client.get("/api/runs/made/claims.json").json()
    verdicts = dict(zip(body["coords"]["claim"]["values"], column(body, "verdict"), strict=True))
    by_id = {claim.id: claim for claim in STUDY.claims}
    for name, verdict in verdicts.items():
        needs_model = any(
            lab.find("made").library.results[each].steps(lab.find("made").run) for each in by_id[name].results
        )
        assert (verdict == NOT_MEASURED) == needs_model
    index = list(verdicts).index("VB3")
    assert "bindscope verify made --claim VB3" in column(body, "reason")[index]
    assert column(body, "figure")[index] == ""
    answer = client.get("/api/runs/made/claims/VB3.svg")
    assert answer.status_code == 404
    assert "bindscope verify" in answer.json()["error"]
    assert {each["claim"] for each in claims._drawable(lab, lab.find("made"))} <= {
        name for name, verdict in verdicts.items() if verdict != NOT_MEASURED
    }


def test_what_another_process_measures_is_shown_without_a_restart(tmp_path: Path) -> None:
    made = make_run(tmp_path / "made")
    run = LabRun(made, tmp_path)
    claim = STUDY.find_claim("VB4")
    assert judge_kept(run.library, claim) == claim.results
    version = run.version
    library = Library(made, STUDY.results, made.path / "results", runs_directory=tmp_path)
    for name in claim.results:  # as verify does
        library.fill(name)
    assert run.version != version
    judged = judge_kept(run.library, claim)
    assert not isinstance(judged, tuple)
    assert judged.has_figure


@pytest.mark.parametrize("name", ["VB99", "x", "..."])
def test_an_unknown_claim_is_missing(client: TestClient, name: str) -> None:
    assert client.get(f"/api/runs/{NAME}/claims/{name}.svg").status_code in (404, 422)
