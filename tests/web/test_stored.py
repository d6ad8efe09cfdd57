"""What is read: the bytes of the export, made once, made again when a run has changed."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path

import orjson
import pytest
from fastapi import FastAPI

from bindscope.runs.directory import Run
from bindscope.web.app import create_app, static_directory
from bindscope.web.body import Body
from bindscope.web.lab import Lab, LabRun, NotMeasured
from bindscope.web.page import Page, Resource
from bindscope.web.pages import runs
from bindscope.web.stored import Stored, Turns
from web.requests import HOST, ask
from web.test_lab import copy_run, write_evaluation

GET = [("Host", HOST)]


def counted(lab: Lab) -> tuple[FastAPI, list[str]]:
    """An application with one resource of a run, and a note of each time it was made."""
    made: list[str] = []

    def make(lab: Lab, run: LabRun, step: int) -> dict[str, int]:
        made.append(f"{run.name} {step}")
        return {"step": step}

    resource = Resource("runs/{run}/steps/{step}.json", make, "A step")
    return create_app(lab, (Page("counted", resources=(resource,)),)), made


def test_a_body_is_made_once(lab: Lab) -> None:
    app, made = counted(lab)
    replies = [ask(app, "GET", "/api/runs/small/steps/12.json", GET) for _ in range(3)]
    assert {reply.body for reply in replies} == {b'{"step":12}'}
    assert made == ["small 12"]


def test_readers_who_come_at_once_share_one_making(lab: Lab) -> None:
    begun, made = threading.Barrier(4), []

    def make(lab: Lab) -> dict[str, int]:
        made.append(1)
        return {"n": len(made)}

    stored, resource, found = Stored(lab), Resource("once.json", make, "Once"), []

    def read() -> None:
        begun.wait(5)
        found.append(stored.read(resource, {}))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [b'{"n":1}'] * 4


def test_a_body_is_made_again_when_its_run_has_changed(small_run: Path, tmp_path: Path) -> None:
    run = copy_run(small_run, tmp_path / "growing")
    app, made = counted(Lab.open([run], tmp_path))
    ask(app, "GET", "/api/runs/small/steps/12.json", GET)
    write_evaluation(run, 16)
    ask(app, "GET", "/api/runs/small/steps/12.json", GET)
    assert made == ["small 12"] * 2


def test_what_a_run_has_not_yet_is_a_body_with_the_reason_until_it_has_it(lab: Lab, small_run: Path) -> None:
    measured: list[int] = []

    def make(lab: Lab, run: LabRun) -> dict[str, int]:
        if not measured:
            raise NotMeasured(f"{run.path}: not measured yet; bindscope verify {run.name}.")
        return {"n": len(measured)}

    app = create_app(lab, (Page("late", resources=(Resource("runs/{run}/late.json", make, "Late"),)),))
    reply = ask(app, "GET", "/api/runs/small/late.json", GET)
    body = Body.model_validate_json(reply.body)
    assert (reply.status, body.variables) == (200, {})
    assert body.absent == "small: not measured yet; bindscope verify small."
    measured.append(1)
    assert ask(app, "GET", "/api/runs/small/late.json", GET).body == b'{"n":1}'


def test_names_nobody_holds_are_forgotten() -> None:
    turns = Turns()
    for number in range(100):
        with turns.take(f"path {number}"):
            assert len(turns) == 1
    assert len(turns) == 0


def test_what_is_served_is_what_an_export_writes(lab: Lab) -> None:
    app, stored = create_app(lab, (runs.PAGE,)), Stored(lab)
    for resource in runs.PAGE.resources:
        for parameters in resource.instances(lab):
            reply = ask(app, "GET", f"/api/{resource.path.format(**parameters)}", GET)
            assert reply.body == stored.read(resource, parameters)
            resource.model.model_validate_json(reply.body)


def test_a_reader_who_has_it_already_gets_nothing_again(app: FastAPI) -> None:
    first = ask(app, "GET", "/api/runs.json", GET)
    tag = first.headers["etag"]
    for held in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = ask(app, "GET", "/api/runs.json", [*GET, ("If-None-Match", held)])
        assert (again.status, again.body) == (304, b"")
    assert ask(app, "GET", "/api/runs.json", [*GET, ("If-None-Match", '"other"')]).status == 200
    assert first.headers["cache-control"] == "no-cache"


def test_head_is_get_without_a_body(app: FastAPI) -> None:
    for path in ("/api/runs.json", "/api/runs/small/run.json", "/api/runs/none/run.json"):
        head, get = (ask(app, method, path, GET) for method in ("HEAD", "GET"))
        assert (head.status, head.headers, head.body) == (get.status, get.headers, b"")
        assert get.body


def test_long_bodies_are_compressed_for_those_who_can_read_it(app: FastAPI) -> None:
    plain = ask(app, "GET", "/api/runs/small/run.json", GET)
    packed = ask(app, "GET", "/api/runs/small/run.json", [*GET, ("Accept-Encoding", "gzip")])
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


def test_the_detail_of_a_run_says_where_it_comes_from(app: FastAPI, small_run: Path) -> None:
    detail = orjson.loads(ask(app, "GET", "/api/runs/small/run.json", GET).body)
    assert detail["command"].startswith("bindscope train binding-tiny --name small ")
    assert "Changed: task.lines=4" in detail["summary"]["description"]
    assert detail["config"] == Run.open(small_run).manifest.config
    assert str(small_run) not in orjson.dumps(detail).decode()


@pytest.mark.parametrize("path", ["runs/none/run.json", "runs/small/steps/7.json"])
def test_what_is_not_there_is_said_without_telling_where_files_lie(path: str, lab: Lab, small_run: Path) -> None:
    app, _ = counted(lab)
    reply = ask(app, "GET", f"/api/{path}", GET)
    assert reply.status == 404
    assert str(small_run.parent) not in reply.error


def test_parts_of_the_page_are_kept_for_good_and_the_page_itself_is_asked_for_again(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "index-abc.js").write_text("0")
    (tmp_path / "index.html").write_text("<!doctype html>")
    monkeypatch.setattr("bindscope.web.app.static_directory", lambda: tmp_path)
    app = create_app(lab)
    assert "immutable" in ask(app, "GET", "/assets/index-abc.js", GET).headers["cache-control"]
    assert ask(app, "GET", "/", GET).headers["cache-control"] == "no-cache"
    assert ask(app, "GET", "/assets/../index.html", GET).status == 404
    assert static_directory().name == "static"
