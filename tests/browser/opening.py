"""Opening a page and waiting until it has settled."""

from __future__ import annotations

from typing import Any


def open_page(page: Any, address: str) -> None:
    """Go there and wait until nothing is loading any more."""
    page.goto(address)
    page.locator("main h1").first.wait_for()
    settle(page)


def settle(page: Any) -> None:
    page.wait_for_function("() => !document.querySelector('main [aria-busy=\"true\"]')")
    page.wait_for_load_state("networkidle")
