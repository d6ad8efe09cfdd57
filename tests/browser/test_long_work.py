"""What takes long, started from the page: something missing measured, a preset trained, stopped and gone on with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from bindscope.cli.main import run
from bindscope.web.app import create_app
from bindscope.web.lab import Lab
from bindscope.web.server import address_of, listen, serving
from cli.small_run import small_options

PATIENCE = 900_000  # milliseconds: the process gives way to all others, and the machine may be busy


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A server of its own, for what is done here changes what it shows; it has a very small run."""
    words = ["train", "binding-tiny", "--name", "small", "--out", str(tmp_path), "--steps", "12", "--threads", "1"]
    assert run([*words, *small_options()]) == 0
    app = create_app(Lab.open([], kept_in=tmp_path, watched=[tmp_path]), starts_work=True)
    with serving(app, listening := listen()):
        yield address_of(listening)


@pytest.fixture
def page(chromium: Any) -> Iterator[Page]:
    """A page of its own: these tests have another server than the others."""
    context = chromium.new_context()
    yield context.new_page()
    context.close()


def test_a_page_at_rest_asks_hardly_anything(page: Page, address: str) -> None:
    page.goto(f"{address}#/1/runs?run=small")
    page.get_by_role("region", name="Train", exact=True).wait_for()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(6_000)
    assert len(asked) <= 4, asked[:8]  # the list of runs, every five seconds


def test_what_is_missing_is_measured_where_it_is_missing(page: Page, address: str) -> None:
    page.goto(f"{address}#/1/development?run=small&development.tab=plateau")
    panel = page.get_by_role("region", name="The local learning coefficient", exact=True)
    panel.get_by_role("button", name="Measure now").click()
    expect(panel.get_by_role("progressbar")).to_be_visible()
    expect(
        page.get_by_role("region", name="The coefficient by layer and by question").get_by_role(
            "button", name="Measure now"
        )
    ).to_be_disabled()
    expect(panel.get_by_role("button", name="Cancel")).to_have_count(0, timeout=PATIENCE)
    expect(panel.get_by_role("button", name="Measure now")).to_have_count(0, timeout=PATIENCE)


def test_a_measurement_is_cancelled(page: Page, address: str) -> None:
    page.goto(f"{address}#/1/development?run=small&development.tab=plateau")
    panel = page.get_by_role("region", name="The local learning coefficient", exact=True)
    panel.get_by_role("button", name="Measure now").click()
    panel.get_by_role("button", name="Cancel").click()
    expect(panel.get_by_text("Cancelled")).to_be_visible(timeout=PATIENCE)
    expect(panel.get_by_role("button", name="Measure now")).to_be_enabled()


def test_a_preset_is_trained_stopped_and_gone_on_with(page: Page, address: str) -> None:
    page.goto(f"{address}#/1/runs?run=small")
    train = page.get_by_role("region", name="Train", exact=True)
    train.get_by_label("Name").fill("mine")
    train.get_by_role("button", name="Start").click()
    expect(train.get_by_role("log")).to_contain_text(re.compile(r"step \d"), timeout=PATIENCE)
    expect(train.get_by_role("listitem").first).to_contain_text("step")
    train.get_by_role("button", name="Stop").click()
    expect(train.get_by_text("stopped", exact=False).first).to_be_visible(timeout=PATIENCE)
    train.get_by_role("button", name="Look at it").click()
    train.get_by_role("button", name="Go on with mine").click()
    expect(train.get_by_role("button", name="Stop")).to_be_visible(timeout=PATIENCE)
    train.get_by_role("button", name="Stop").click()
    expect(train.get_by_role("button", name="Stop")).to_have_count(0, timeout=PATIENCE)
