"""Long work from the page: measuring and training in processes of their own, for the page alone, one at a time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi.testclient import TestClient

from bindscope.errors import BindscopeError
from bindscope.runs.directory import Run
from bindscope.web import beside
from bindscope.web.app import create_app
from bindscope.web.lab import Lab, Missing
from bindscope.web.work import Job, LongWork, Work, read_fraction
from cli.small_run import small_options
from web.requests import HOST, ORIGIN, Reply, ask
from web.test_lab import copy_run

PAGE = [("Host", HOST), ("Content-Type", "application/json"), ("Origin", ORIGIN)]
QUESTIONS: dict[str, dict[str, Any]] = {
    "measure": {"run": "small", "results": ["lens"]},
    "train": {"preset": "binding-tiny", "name": "new"},
    "resume": {"run": "small"},
    "stop": {"kind": "train"},
}
LONGEST = 120  # seconds that a test waits for a process on a busy machine


class Recorder:
    """Begins a stand-in and remembers the words of the command."""

    def __init__(self, code: str = "input()") -> None:
        self.code, self.words = code, list[tuple[str, ...]]()

    def __call__(self, *words: str, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        self.words.append(words)
        command = [sys.executable, "-c", self.code]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr)


def post(lab: Lab, path: str, headers: list[tuple[str, str]] = PAGE, allowed: bool = True, **question: Any) -> Reply:
    begin = Recorder("raise SystemExit(0)")
    app = create_app(lab, starts_work=allowed, begin=begin)
    return ask(app, "POST", f"/api/{path}", headers, [orjson.dumps(question or QUESTIONS[path])])


def the_job(work: LongWork, kind: Any) -> Job:
    return work._jobs[kind]


@pytest.fixture
def watching(small_run: Path, tmp_path: Path) -> Lab:
    """A lab that shows what is under a directory of runs, with one run that may be written to."""
    copy_run(small_run, tmp_path / "runs" / "small")
    return Lab.open([tmp_path / "runs" / "small"], kept_in=tmp_path / "runs", watched=[tmp_path / "runs"])


@pytest.mark.parametrize("path", QUESTIONS)
def test_only_a_server_that_starts_work_does(lab: Lab, path: str) -> None:
    reply = post(lab, path, allowed=False)
    assert (reply.status, reply.error) == (403, "this server starts no measurements and no trainings from the page.")


@pytest.mark.parametrize("path", QUESTIONS)
def test_a_server_without_live_questions_starts_nothing(lab: Lab, path: str) -> None:
    lab.live = False
    assert post(lab, path).status == 403


@pytest.mark.parametrize("path", QUESTIONS)
@pytest.mark.parametrize("origin", [None, "http://elsewhere.example", "null"])
def test_only_the_page_itself_starts_work(lab: Lab, path: str, origin: str | None) -> None:
    headers = [header for header in PAGE if header[0] != "Origin"] + ([("Origin", origin)] if origin else [])
    assert post(lab, path, headers).status == 403


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("measure", {"run": "small", "results": []}),
        ("measure", {"run": "small", "results": ["lens"] * 61}),
        ("measure", {"run": "small", "results": ["lens"], "out": "/tmp"}),
        ("train", {"preset": "../mine.toml", "name": "new"}),
        ("train", {"preset": "mine.toml", "name": "new"}),
        ("train", {"preset": "binding-tiny", "name": "../new"}),
        ("train", {"preset": "binding-tiny", "name": ".new"}),
        ("train", {"preset": "binding-tiny", "name": "--resume"}),
        ("train", {"preset": "binding-tiny", "name": "new", "seed": -1}),
        ("train", {"preset": "binding-tiny", "name": "new", "seed": True}),
        ("train", {"preset": "binding-tiny", "name": "new", "settings": ["x=1"]}),
        ("stop", {"kind": "everything"}),
    ],
)
def test_a_request_names_no_path_no_setting_and_no_option(lab: Lab, path: str, question: dict[str, Any]) -> None:
    assert post(lab, path, **question).status == 422


def test_unknown_runs_results_and_presets_are_refused(watching: Lab) -> None:
    work = LongWork(watching, Recorder())
    with pytest.raises(Missing, match="no run 'smal'"):
        work.measure("smal", ["lens"])
    with pytest.raises(BindscopeError, match="no result 'len'"):
        work.measure("small", ["len"])
    with pytest.raises(BindscopeError, match="no preset 'binding-tny'"):
        work.train("binding-tny", "new")
    assert not work.describe().work


def test_the_command_measures_where_results_of_the_run_are_saved(lab: Lab, watching: Lab) -> None:
    """Of a run that is only read they are saved outside it, where the page looks for them."""
    for each in (lab, watching):
        begin = Recorder()
        work = LongWork(each, begin)
        work.measure("small", ["lens", "chain"])
        run, (words,) = each.find("small"), begin.words
        assert words[:4] == ("measure", str(run.path.resolve()), "lens", "chain")
        saved = Path(words[words.index("--out") + 1]) if run.read_only else run.path
        assert saved / "results" == run.library.folder
        work.close()


def test_one_at_a_time_and_stopping_is_said(watching: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    said = threading.Event()
    monkeypatch.setattr("bindscope.web.work.stop", lambda *words: said.wait(LONGEST) and beside.stop(*words))
    work = LongWork(watching, Recorder())
    work.measure("small", ["lens"])
    with pytest.raises(BindscopeError, match="small is being measured; one at a time"):
        work.measure("small", ["chain"])
    assert work.train("binding-tiny", "new").status == "at work"  # the two kinds do not wait for each other
    assert work.stop("measure").status == "stopping"
    said.set()  # only now may it end
    the_job(work, "measure").join(LONGEST)
    assert [each.status for each in work.describe().work] == ["stopped", "at work"]
    with pytest.raises(Missing, match="nothing of this kind"):
        work.stop("measure")
    work.close()
    assert the_job(work, "train").process.wait(LONGEST) is not None  # it ends, on a busy machine later


def test_what_a_command_says_is_kept_in_bounds(watching: Lab) -> None:
    code = "[print(f'step {n}/40  loss 1') for n in range(41)]; print('x' * 5000); raise SystemExit(2)"
    work = LongWork(watching, Recorder(code))
    work.train("binding-tiny", "new")
    the_job(work, "train").join(LONGEST)
    (shown,) = work.describe().work
    assert (shown.status, shown.fraction) == ("failed", 1.0)
    assert len(shown.lines) == 12
    assert len(shown.lines[-1]) == 400


def test_a_new_run_needs_a_free_name_and_a_place_that_is_shown(lab: Lab, watching: Lab) -> None:
    with pytest.raises(BindscopeError, match="there is a run 'small' already"):
        LongWork(watching, Recorder()).train("binding-tiny", "small")
    with pytest.raises(BindscopeError, match="would not be shown"):
        LongWork(lab, Recorder()).train("binding-tiny", "new")


def test_only_an_interrupted_run_that_may_be_written_to_goes_on(lab: Lab, watching: Lab) -> None:
    with pytest.raises(BindscopeError, match="only read here"):
        LongWork(lab, Recorder()).resume("small")
    with pytest.raises(BindscopeError, match="small is finished; only a run that was interrupted"):
        LongWork(watching, Recorder()).resume("small")


@pytest.mark.parametrize(
    ("kind", "line", "fraction"),
    [
        ("train", "step 1,500/3,000  loss 0.1", 0.5),
        ("train", "saved", 0.25),
        ("measure", "75 %  patching the chain", 0.75),
        ("measure", "step 1/2 ", 0.25),
    ],
)
def test_progress_is_read_off_what_a_command_says(kind: Any, line: str, fraction: float) -> None:
    assert read_fraction(kind, line, 0.25) == fraction


def test_a_missing_result_is_measured_and_then_read(watching: Lab) -> None:
    """The whole way: the body says what is missing, the request measures it, the body is there."""
    with TestClient(create_app(watching, starts_work=True), base_url=ORIGIN) as client:
        path = "/api/runs/small/coefficient.json"
        absent = client.get(path).json()
        assert absent["missing"] == ["coefficient"]
        asked = client.post(
            "/api/measure", json={"run": "small", "results": absent["missing"]}, headers={"Origin": ORIGIN}
        )
        assert asked.status_code == 200
        ended = wait_for(client)
        found = client.get(path).json()
        assert ended.status == "done", ended
        assert found.get("absent") is None
        assert found["variables"]


def test_what_a_run_cannot_give_is_said(watching: Lab) -> None:
    with TestClient(create_app(watching, starts_work=True), base_url=ORIGIN) as client:
        question = {"run": "small", "results": ["mixture"]}  # needs longer programs than this run has
        client.post("/api/measure", json=question, headers={"Origin": ORIGIN})
        ended = wait_for(client)
        assert ended.status == "failed"
        assert "lines" in ended.lines[-1]


def test_a_training_is_stopped_and_goes_on(watching: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A very small run, begun as the page begins it but for its settings, which no request can name."""
    from bindscope.web import beside

    def begin(*words: str, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        further = ["--steps", "4000", *small_options()] if words[0] == "train" else []
        return beside.begin(*words, *further, stdout=stdout, stderr=stderr)

    with TestClient(create_app(watching, starts_work=True, begin=begin), base_url=ORIGIN) as client:

        def post_now(path: str, **question: Any) -> Work:
            answer = client.post(f"/api/{path}", json=question, headers={"Origin": ORIGIN})
            assert answer.status_code == 200, answer.text
            return Work(**answer.json())

        post_now("train", preset="binding-tiny", name="new", seed=3)
        wait_for(client, lambda work: bool(work.fraction))
        post_now("stop", kind="train")
        assert wait_for(client).status == "stopped"
        stopped = Run.open(watching.kept_in / "new")
        assert (stopped.status, stopped.config.seed) == ("interrupted", 3)
        reached = stopped.metrics[-1]["step"]
        watching._looked = float("-inf")
        begun = post_now("resume", run="new")
        wait_for(client, lambda work: work.number == begun.number and bool(work.fraction))
        post_now("stop", kind="train")
        wait_for(client)
        assert Run.open(watching.kept_in / "new").metrics[-1]["step"] >= reached


def wait_for(client: TestClient, found: Any = lambda work: work.status not in ("at work", "stopping")) -> Work:
    """What is at work once it is as wanted."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        work = Work(**client.get("/api/work.json").json()["work"][0])
        if found(work):
            return work
        assert work.status in ("at work", "stopping"), work
        time.sleep(0.2)
    raise AssertionError(f"nothing came of it: {work}")
