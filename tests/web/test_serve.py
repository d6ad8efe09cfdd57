"""``bindscope serve`` as a process: it comes up, answers over the network stack, and ends."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

import bindscope
from bindscope.cli.main import run
from bindscope.cli.serve import open_lab, served
from bindscope.runs.locate import shipped_runs
from bindscope.web.server import is_loopback, listen
from interrupts import heed_interrupts
from web.requests import Reply

BUILT = """
import sys
from pathlib import Path
import bindscope.web.app
from bindscope.cli.main import main
bindscope.web.app.static_directory = lambda: Path(sys.argv[1])
main(sys.argv[2:])
"""
LOOPBACK = "127.0.0.1"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A page that was built, as far as the server can tell."""
    (tmp_path / "static" / "assets").mkdir(parents=True)
    (tmp_path / "static" / "index.html").write_text("<!doctype html><title>Bindscope</title>")
    return tmp_path / "static"


@contextlib.contextmanager
def started(
    built: Path, *arguments: str, where: Path | None = None, first: Path | None = None
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process of the command, once it has said its address; what it says further can be read from its output.

    Modules are looked for in ``first`` before anywhere else.
    """
    modules = [str(path) for path in (first, Path(bindscope.__file__).parents[1]) if path is not None]
    process = subprocess.Popen(
        [sys.executable, "-c", BUILT, str(built), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=where, preexec_fn=heed_interrupts,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(modules)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://[^:]+:(\d+)/", line)
        assert found, line
        yield process, int(found.group(1))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def fetch(port: int, method: str, path: str, headers: dict[str, str] | None = None, body: bytes | None = None) -> Reply:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=600)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in ({"Host": f"{LOOPBACK}:{port}"} | (headers or {})).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, [answer.read()])
    finally:
        connection.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_answers_until_it_is_interrupted(number: int, built: Path, small_run: Path) -> None:
    json = {"Content-Type": "application/json"}
    question = orjson.dumps({"run": "small", "steps": [12], "program": "a=5;b=a;#b:"})
    with started(built, "serve", str(small_run), "--no-open") as (process, port):
        assert b"<title>Bindscope" in fetch(port, "GET", "/").body
        assert orjson.loads(fetch(port, "GET", "/api/runs.json").body)["runs"][0]["name"] == "small"
        assert fetch(port, "GET", "/api/runs.json", {"Host": "evil.example"}).status == 421
        assert fetch(port, "GET", "/assets/../index.html").status == 404
        assert fetch(port, "GET", "/assets/%2e%2e/index.html").status == 404
        if number == signal.SIGINT:
            assert fetch(port, "POST", "/api/live/predict", json, question).status == 200
            assert (
                fetch(port, "POST", "/api/live/predict", json | {"Origin": "https://evil.example"}, question).status
                == 403
            )
        process.send_signal(number)
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0
        assert "Stopped." in output
        assert "Traceback" not in output


def test_a_server_told_to_end_while_it_loads_torch_does_not_wait_for_it(
    built: Path, small_run: Path, tmp_path: Path
) -> None:
    """A torch whose import never ends stands in for a slow one: only a server that does not wait for it can end."""
    (tmp_path / "slow" / "torch").mkdir(parents=True)
    os.mkfifo(tmp_path / "loading")
    (tmp_path / "slow" / "torch" / "__init__.py").write_text(
        f"import threading; open({str(tmp_path / 'loading')!r}, 'w').close(); threading.Event().wait()"
    )
    with started(built, "serve", str(small_run), "--no-open", first=tmp_path / "slow") as (process, _):
        (tmp_path / "loading").read_text()  # until it has begun
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert output.strip() == "Stopped."


def test_a_damaged_run_is_named_at_the_start_and_in_the_list(
    built: Path, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bindscope.web.app.static_directory", lambda: built)
    shutil.copytree(small_run, tmp_path / "runs" / "good")
    for name in ("bad", "worse"):
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / "manifest.json").write_text("{")
    sentence = "{}/manifest.json: the manifest is damaged: it is not valid JSON."
    with served(open_lab([str(tmp_path / "runs")], live=False)) as address:
        listed = orjson.loads(fetch(int(address.strip("/").rpartition(":")[2]), "GET", "/api/runs.json").body)
    assert [run["name"] for run in listed["runs"]] == ["small"]
    assert listed["problems"] == [sentence.format(name) for name in ("bad", "worse")]
    said = capsys.readouterr().err.splitlines()
    assert said == [f"bindscope: not shown: {problem}" for problem in listed["problems"]]


def test_the_list_of_runs_needs_no_torch(built: Path, small_run: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from bindscope.web.lab import Lab; from bindscope.web.app import create_app;"
        "from bindscope.web.stored import Stored; from bindscope.web.pages import runs;"
        "lab = Lab.open([Path(sys.argv[1])]); create_app(lab);"
        "[Stored(lab).read(resource, p) for resource in runs.PAGE.resources for p in resource.instances(lab)];"
        "print([name for name in ('torch', 'matplotlib') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program, str(small_run)], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"


def test_the_demo_shows_a_run_that_learns_and_stops_it_resumably(built: Path, tmp_path: Path) -> None:
    with started(built, "demo", "--no-open", where=tmp_path) as (process, port):
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline:
            listed = orjson.loads(fetch(port, "GET", "/api/runs.json").body)["runs"]
            growing = [run for run in listed if run["name"] == "binding-tiny" and run["status"] == "training"]
            if growing and growing[0]["steps"]:
                break
            time.sleep(0.2)
        assert [run["name"] for run in listed] == [*(path.name for path in shipped_runs()), "binding-tiny"]
        assert growing
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert "go on with 'bindscope resume runs/binding-tiny'" in output
    assert "Traceback" not in output
    assert run(["runs", str(tmp_path / "runs")]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "there is no run 'nowhere'"),
        (["--host", "0.0.0.0"], "name the host they use with --allow-host"),
        (["--allow-host", "lab.example.org:80"], "without a port"),
        (["--allow-host", "http://lab"], "without a port"),
        (["--host", "no such host", "--allow-host", "lab"], "cannot listen at no such host"),
        (["--port", "70000"], "65535"),
    ],
)
def test_what_cannot_be_served_is_refused_with_one_sentence(
    arguments: list[str], sentence: str, built: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bindscope.web.app.static_directory", lambda: built)
    assert run(["serve", "--no-open", *arguments]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert told.count("\n") == 1


def test_the_ideal_mechanism_joins_the_learned_ones_by_itself(built: Path, tmp_path: Path) -> None:
    with started(built, "serve", "--no-open", where=tmp_path) as (process, port):
        names: list[str] = []
        deadline = time.monotonic() + 200
        while "binding-constructed" not in names and time.monotonic() < deadline:
            time.sleep(0.3)
            listed = orjson.loads(fetch(port, "GET", "/api/runs.json").body)["runs"]
            names = [run["name"] for run in listed]
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=600)
    assert names == [*(path.name for path in shipped_runs()), "binding-constructed"]
    assert listed[-1]["description"].startswith("The ideal mechanism")
    assert output == "\nStopped.\n"


@pytest.mark.parametrize("arguments", [("--no-ideal",), ("--no-live",), ("RUN",)])
def test_the_ideal_mechanism_is_written_only_where_it_is_wanted(
    arguments: tuple[str, ...], built: Path, small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    @contextlib.contextmanager
    def noted(*words: str, **options: object) -> Iterator[None]:
        asked.append(words)
        yield

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bindscope.web.app.static_directory", lambda: built)
    monkeypatch.setattr("bindscope.web.server.wait_for_interrupt", interrupt)
    monkeypatch.setattr("bindscope.cli.serve.beside", noted)
    assert run(["serve", "--no-open"]) == 0
    assert asked == [("construct", "--out", "runs")]
    words = [str(small_run) if word == "RUN" else word for word in arguments]
    assert run(["serve", "--no-open", *words]) == 0
    (tmp_path / "runs" / "binding-constructed").mkdir(parents=True)
    assert run(["serve", "--no-open"]) == 0
    assert len(asked) == 1


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_a_page_that_was_not_built_says_how_to_build_it(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bindscope.web.app.static_directory", lambda: tmp_path)
    assert run([command, "--no-open"]) == 2
    assert "'make demo' or 'pip install .'" in capsys.readouterr().err


def test_the_next_free_port_is_taken_unless_one_is_asked_for(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        number = taken.getsockname()[1]
        monkeypatch.setattr("bindscope.web.server.PORT", number)
        with listen() as other:
            assert number < other.getsockname()[1] < number + 20
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("bindscope.web.app.static_directory", lambda: built)
        assert run(["serve", "--no-open", "--port", str(number)]) == 2
        assert f"port {number}: address already in use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "alone"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True), ("Localhost", True), ("0.0.0.0", False), ("::", False), ("lab.example.org", False), ("", False)],
)  # fmt: skip
def test_only_loopback_is_this_machine_alone(host: str, alone: bool) -> None:
    assert is_loopback(host) is alone
