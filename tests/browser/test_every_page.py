"""What holds for every page: it opens and settles without an error, on the server and as a static copy, for everyone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browser.opening import open_page

FRONTEND = Path(__file__).parents[2] / "frontend"
AXE = FRONTEND / "node_modules" / "axe-core" / "axe.min.js"
PAGES = sorted(path.parent.name for path in (FRONTEND / "src" / "pages").glob("*/index.ts"))
SIZES = {"phone": (360, 780), "laptop": (1280, 900), "wall": (3840, 2160)}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_settles_without_an_error(site: Any, page: Any, name: str) -> None:
    open_page(page, site.at(f"#/1/{name}"))
    assert page.locator("main [role=alert]").all_inner_texts() == []
    assert page.locator("main section.panel, main article, main a, main table").count() > 0


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(served: Any, chromium: Any, name: str, scheme: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed")
    context = chromium.new_context(bypass_csp=True, color_scheme=scheme, reduced_motion="reduce")
    page = context.new_page()
    open_page(page, served.at(f"#/1/{name}"))
    page.add_script_tag(path=AXE)
    found = page.evaluate("async () => (await axe.run(document)).violations")
    context.close()
    assert [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in found] == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_the_screen(served: Any, chromium: Any, name: str, size: str) -> None:
    width, height = SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    page = context.new_page()
    open_page(page, served.at(f"#/1/{name}"))
    overflow = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    context.close()
    assert overflow <= 0
