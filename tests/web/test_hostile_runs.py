"""Runs that someone made to do harm, or that are damaged in odd ways: nothing is written elsewhere, nothing breaks the rest."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi import FastAPI

from bindscope.runs.directory import Run
from bindscope.web import lab as lab_module
from bindscope.web.app import create_app
from bindscope.web.export import list_files
from bindscope.web.lab import Lab, LabRun
from bindscope.web.opening import NO_RUN, open_directory
from bindscope.web.page import Page, Resource
from rewriting import rewrite_manifest, rewrite_metrics
from web.requests import HOST, ask
from web.test_lab import copy_run

HUGE = 10**30  # no JSON number that a browser or orjson takes
HALF = "\ud800"  # half of a character: JSON can hold it, text cannot


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_module, "LOOK_EVERY", 0.0)


def damage(run: Path, **entries: Any) -> Path:
    """The manifest with entries that no manifest of Bindscope has."""
    rewrite_manifest(run, lambda content: content.update(entries))
    return run


def damage_metrics(run: Path, **entries: Any) -> Path:
    lines = [json.loads(line) | entries for line in (run / "metrics.jsonl").read_text().splitlines()]
    rewrite_metrics(run, "".join(json.dumps(line) + "\n" for line in lines))
    return run


def read(app: FastAPI, path: str) -> tuple[int, Any]:
    reply = ask(app, "GET", f"/api/{path}", [("Host", HOST)])
    return reply.status, orjson.loads(reply.body)


@pytest.mark.parametrize("name", ["x/../../../elsewhere", "/etc", "..", "x\0y", "a/b"])
def test_results_of_a_run_are_kept_where_they_belong_whatever_it_calls_itself(
    name: str, small_run: Path, tmp_path: Path
) -> None:
    run = LabRun(Run.open(damage(copy_run(small_run, tmp_path / "run"), name=name)), tmp_path / "kept", read_only=True)
    folder = run.library.folder
    assert folder.resolve().parent.parent == (tmp_path / "kept").resolve()
    assert folder.name == "results"
    folder.mkdir(parents=True)


@pytest.mark.parametrize(
    "entries",
    [
        {"total_steps": HUGE}, {"seeds": {"data": HUGE}}, {"versions": {"torch": HALF}}, {"machine": {"threads": HALF}},
        {"machine": {"processes": "many"}}, {"machine": {"threads": [HUGE]}}, {"data": {"kind": "imported"}}, {"name": HALF},
        {"data": {"deep": json.loads("[" * 900 + "]" * 900)}}, {"checkpoints": {"9" * 5000: {}}},
        {"data": {"kind": "imported", "files": {}, "lineage": {"3": HALF}}},
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_shown_is_not_opened_and_breaks_no_other(
    entries: dict[str, Any], lab: Lab, small_run: Path, tmp_path: Path
) -> None:
    bad = damage(copy_run(small_run, tmp_path / "watched" / "bad"), **entries)
    check_refused(bad, lab, small_run)


@pytest.mark.parametrize("entries", [{"step": HUGE}, {"loss": HALF, "step": 2**63}])
def test_nor_is_one_whose_evaluations_are_no_numbers(
    entries: dict[str, Any], lab: Lab, small_run: Path, tmp_path: Path
) -> None:
    bad = damage_metrics(copy_run(small_run, tmp_path / "watched" / "bad"), **entries)
    check_refused(bad, lab, small_run)


def check_refused(bad: Path, lab: Lab, good: Path) -> None:
    with pytest.raises(Exception, match=NO_RUN):
        open_directory(lab, str(bad))
    assert list(lab.runs) == ["small"]
    app = create_app(Lab.open([good], read_only=[good], watched=[bad.parent]))
    status, body = read(app, "runs.json")
    assert (status, [run["name"] for run in body["runs"]]) == (200, ["small"])
    for name in app.state.lab.runs:
        assert read(app, f"runs/{name}/run.json")[0] == (200 if name == "small" else 400)


def test_what_is_no_plain_file_is_not_waited_for(lab: Lab, small_run: Path, tmp_path: Path) -> None:
    bad = copy_run(small_run, tmp_path / "bad")
    (bad / "metrics.jsonl").unlink()
    os.mkfifo(bad / "metrics.jsonl")
    done: list[bool] = []
    thread = threading.Thread(target=lambda: (check_refused(bad, lab, small_run), done.append(True)), daemon=True)
    thread.start()
    thread.join(timeout=300)
    assert done == [True]


@pytest.mark.parametrize("value", ["../../../elsewhere", "/etc/elsewhere", "a/b", ".hidden", "", "a\n"])
def test_an_export_writes_no_file_that_the_server_would_not_send(value: str, lab: Lab) -> None:
    def each(lab: Lab, run: LabRun) -> list[dict[str, str]]:
        return [{"of": value}, {"of": "fine"}]

    page = Page("made", (Resource("runs/{run}/made/{of}.json", lambda lab, run, of: {"of": of}, "Made", each=each),))
    assert [parameters for _, parameters in list_files(lab, (page,))] == [{"run": "small", "of": "fine"}]


def test_only_the_paths_of_runs_are_left_out_of_sentences(small_run: Path, tmp_path: Path) -> None:
    for name in ("a", "a-b"):
        copy_run(small_run, tmp_path / name, name=name)
    inside = Lab([LabRun(Run(Path("."), Run.open(small_run).manifest))])
    assert inside.without_paths("there is no run 'x' here.") == "there is no run 'x' here."
    beside = Lab.open([tmp_path / "a", tmp_path / "a-b"])
    assert beside.without_paths(f"{tmp_path}/a-b: step 3; '{tmp_path}/a/x'.") == "a-b: step 3; 'a/x'."


def test_models_of_many_runs_share_one_memory(small_run: Path, tmp_path: Path) -> None:
    lab = Lab.open([copy_run(small_run, tmp_path / str(number)) for number in range(4)])
    runs = list(lab.runs.values())
    lab.models.limit = 3 * 4 * runs[0].run.config.model.n_parameters
    for run in runs:
        for step in run.steps:
            assert run.model(step) is run.model(step)
            assert run.model(step).config == run.run.config.model
    assert len(lab.models) == 3
    lab.models.limit = 0
    first = [runs[0].model(step) for step in runs[0].steps[:2]]
    assert [runs[0].model(step) for step in runs[0].steps[:2]] == first
