"""The static copy in a real browser: from a plain file server, under a sub-path, asking nobody and computing by itself."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bindscope.cli.locate import find_run
from bindscope.web.app import static_directory
from bindscope.web.export import export_site
from bindscope.web.lab import Lab
from bindscope.web.pages import PAGES

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
NEEDED = ("runs", "program", "logits", "weights")
LONG = 60_000  # milliseconds, for a busy machine

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here"),
    pytest.mark.skipif(not (static_directory() / "index.html").is_file(), reason="the page is not built"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An export of a shipped run two directories below what a plain file server serves."""
    root, shipped = tmp_path_factory.mktemp("served"), find_run("binding-plain")
    lab = Lab.open([shipped], kept_in=root / "kept", read_only=[shipped])
    run = lab.find("binding-plain")
    run.show_steps((run.run.steps[0], run.run.steps[-1]))
    export_site(lab, root / "some" / "place", pages=tuple(page for page in PAGES if page.name in NEEDED))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/some/place/"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: Any) -> None:
        """Say nothing."""


@pytest.fixture
def browser_page(address: str) -> Iterator[tuple[Any, list[str]]]:
    """A page, and everything that went wrong in it or left the place it was served from."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        page, wrong = browser.new_page(), []
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda problem: wrong.append(str(problem)))
        page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url}"))
        page.on(
            "response", lambda answer: wrong.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None
        )
        inside = (address, "data:", "blob:")
        page.on("request", lambda asked: None if asked.url.startswith(inside) else wrong.append(f"left: {asked.url}"))
        page.on("request", lambda asked: wrong.append(f"asked: {asked.url}") if asked.method != "GET" else None)
        yield page, wrong
        browser.close()


def test_a_copy_opens_under_a_sub_path_and_reads_only_its_own_files(
    address: str, browser_page: tuple[Any, list[str]]
) -> None:
    page, wrong = browser_page
    page.goto(address)
    page.get_by_role("main").get_by_role("heading").first.wait_for(timeout=LONG)
    assert "binding-plain" in page.content()
    assert not wrong


def test_a_copy_computes_the_lens_of_the_readers_program_itself(
    address: str, browser_page: tuple[Any, list[str]]
) -> None:
    page, wrong = browser_page
    page.goto(f"{address}#/1/logits?program=c=7;a=5;b=a;!b:")
    panel = page.get_by_role("region", name="What each layer would answer")
    panel.get_by_text("n = 1").wait_for(timeout=LONG)
    assert panel.get_by_role("alert").count() == 0
    assert page.get_by_role("alert").count() == 0
    assert not wrong
