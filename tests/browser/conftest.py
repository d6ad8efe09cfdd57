"""A real browser on the real page: once on the server, once on a static copy under a sub-path of a plain file server.

A test fails when the page asks anything of another host, writes an error to the console, or throws.
"""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="Playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WAIT = 300_000  # milliseconds; a busy machine is slow


@dataclass(frozen=True)
class Site:
    """Where the page is served, and whether a server answers live questions there."""

    address: str
    live: bool

    def at(self, hash_: str = "") -> str:
        return f"{self.address}{hash_}"


@dataclass
class Watch:
    """What a page did that it should not, since the reader came to the site."""

    page: Any
    site: Site = field(default_factory=lambda: Site("about:blank", live=False))
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        page = self.page
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"thrown: {error}"))
        page.on("request", self._request)
        page.on("response", self._response)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.site.address, "data:", "blob:")):
            self.problems.append(f"asked elsewhere: {request.url}")
        if not self.site.live and request.method != "GET":
            self.problems.append(f"asked a static copy to work: {request.method} {request.url}")

    def _response(self, response: Any) -> None:
        if response.status >= 400:
            self.problems.append(f"{response.status} {response.url}")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser a module: while it is open, Playwright keeps an event loop running that other tests must not meet."""
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The shipped runs on a server in this process."""
    import uvicorn

    from bindscope.runs.locate import shipped_runs
    from bindscope.web.app import create_app, static_directory
    from bindscope.web.lab import Lab

    if not (static_directory() / "index.html").is_file():
        pytest.skip("the page was not built")
    shipped = shipped_runs()
    lab = Lab.open(shipped, kept_in=tmp_path_factory.mktemp("runs"), read_only=shipped)
    server = uvicorn.Server(
        uvicorn.Config(create_app(lab, opens_directories=True), port=free_port(), log_level="warning")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield Site(f"http://127.0.0.1:{server.config.port}/", live=True)
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory, made_once: Any) -> Iterator[Site]:
    """A static copy of the same, in a folder below the root of a plain file server; made once for all processes."""
    from bindscope.runs.locate import shipped_runs
    from bindscope.web.export import export_site
    from bindscope.web.lab import Lab

    shipped = shipped_runs()
    lab = Lab.open(shipped, kept_in=tmp_path_factory.mktemp("runs"), read_only=shipped)
    root = made_once("static", lambda folder: export_site(lab, folder / "papers" / "binding"))
    with serve_files(root) as address:
        yield Site(f"{address}papers/binding/", live=False)


@pytest.fixture(params=["served", "exported"])
def site(request: pytest.FixtureRequest) -> Site:
    """The same scenarios on both."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def window(chromium: Any) -> Iterator[Watch]:
    """One page a module, as opening one costs more than most tests do in it."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(WAIT)
    yield Watch(context.new_page())
    context.close()


@pytest.fixture
def page(window: Watch, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page as a new reader finds it: empty, nothing stored, nothing allowed."""
    site = request.getfixturevalue("site" if "site" in request.fixturenames else "served")
    opened = window.page
    opened.goto("about:blank")
    opened.context.clear_permissions()
    clear = {"origin": site.address, "storageTypes": "all"}
    opened.context.new_cdp_session(opened).send("Storage.clearDataForOrigin", clear)
    window.site = site
    window.problems.clear()
    yield opened
    assert window.problems == []  # what it did wrong fails the test that used it


@contextmanager
def serve_files(root: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
