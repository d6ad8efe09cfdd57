"""Opening a page and waiting until it has settled."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect


def open_page(page: Any, address: str) -> None:
    """Go there and wait until nothing is loading any more."""
    page.goto(address)
    page.locator("main h1").first.wait_for()
    settle(page)


def settle(page: Any) -> None:
    expect(page.locator("main [aria-busy=true]")).to_have_count(0, timeout=600_000)
    page.wait_for_load_state("networkidle")
