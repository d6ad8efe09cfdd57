"""Opening a directory from the page: a run or nothing, for the page alone, telling nothing of the disk."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from bindscope.runs.directory import MANIFEST
from bindscope.web.app import create_app
from bindscope.web.lab import Lab
from bindscope.web.opening import NO_RUN
from rewriting import rewrite_metrics
from web.requests import HOST, ORIGIN, Reply, ask
from web.test_lab import copy_run

PAGE = [("Host", HOST), ("Content-Type", "application/json"), ("Origin", ORIGIN)]


def open_path(lab: Lab, path: str, headers: list[tuple[str, str]] = PAGE, allowed: bool = True) -> Reply:
    app = create_app(lab, opens_directories=allowed)
    return ask(app, "POST", "/api/open", headers, [orjson.dumps({"path": path})])


def test_a_run_is_opened_by_its_absolute_or_relative_path(
    lab: Lab, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = copy_run(small_run, tmp_path / "other", name="other")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (str(other), "other", "./other/", "~/other"):
        assert orjson.loads(open_path(lab, path).body) == {"name": "other"}
    assert list(lab.runs) == ["small", "other"]


def test_an_opened_run_is_never_written_to(lab: Lab, small_run: Path, tmp_path: Path) -> None:
    other = copy_run(small_run, tmp_path / "other", name="other")
    open_path(lab, str(other))
    assert lab.kept_in in lab.find("other").library.folder.parents


def test_whatever_is_no_run_gives_the_same_answer(lab: Lab, small_run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("secret")
    (tmp_path / "no-manifest").mkdir()
    (tmp_path / "no-manifest" / MANIFEST).write_text('{"secret": 1}')
    (tmp_path / "folder-as-manifest" / MANIFEST).mkdir(parents=True)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    nothing_inside = copy_run(small_run, tmp_path / "bad-settings", config={"secret": 1})
    bad_metrics = copy_run(small_run, tmp_path / "bad-metrics")
    rewrite_metrics(bad_metrics, "secret\n")
    names = [
        "missing", "empty", "file", "no-manifest", "folder-as-manifest", "loop", nothing_inside.name, bad_metrics.name,
        "file/inside", "no-manifest/manifest.json",
    ]  # fmt: skip
    odd = ["/etc/passwd", "/", "", "a" * 4000, "\0", "\ud800", "~nobody-of-this-name/run", "//", "small/../../.."]
    replies = [open_path(lab, str(tmp_path / name)) for name in names]
    replies += [open_path(lab, path) for path in odd if path and path != "\ud800"]
    assert {(reply.status, reply.body) for reply in replies} == {(400, orjson.dumps({"error": NO_RUN}))}
    assert list(lab.runs) == ["small"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"path": ""}',
        b'{"path": "\\ud800"}',
        b"{}",
        b'{"path": 1}',
        b'{"path": "a", "b": 1}',
        b'{"path": "%s"}' % (b"a" * 5000),
    ],
)
def test_what_is_no_path_is_refused(body: bytes, lab: Lab) -> None:
    assert ask(create_app(lab, opens_directories=True), "POST", "/api/open", PAGE, [body]).status in (400, 422)


@pytest.mark.parametrize(
    "headers",
    [
        PAGE[:2],  # no word of where it comes from: a program, or a page that hides it
        [*PAGE[:2], ("Sec-Fetch-Site", "none")],
        [*PAGE[:2], ("Origin", "null")],
        [*PAGE[:2], ("Origin", "https://evil.example")],
        [*PAGE, ("Sec-Fetch-Site", "cross-site")],
        [("Host", HOST), PAGE[2], ("Content-Type", "text/plain")],
    ],
)
def test_only_the_page_itself_can_open_a_directory(
    headers: list[tuple[str, str]], lab: Lab, small_run: Path, tmp_path: Path
) -> None:
    other = copy_run(small_run, tmp_path / "other", name="other")
    assert open_path(lab, str(other), headers).status in (403, 415)
    assert list(lab.runs) == ["small"]


def test_a_server_can_do_without(lab: Lab, small_run: Path, tmp_path: Path) -> None:
    other = copy_run(small_run, tmp_path / "other", name="other")
    reply = open_path(lab, str(other), allowed=False)
    assert (reply.status, list(lab.runs)) == (403, ["small"])
    assert "opens no directories" in reply.error
