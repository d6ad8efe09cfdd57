"""What holds for every page: it opens and settles without an error, on the server and as a static copy, for everyone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bindscope.runs.locate import shipped_runs
from browser.opening import open_page, settle

FRONTEND = Path(__file__).parents[2] / "frontend"
AXE = FRONTEND / "node_modules" / "axe-core" / "axe.min.js"
PAGES = sorted(path.parent.name for path in (FRONTEND / "src" / "pages").glob("*/index.ts"))
SUMS = "assign-add"  # the shipped run on modular addition, which pages for all families show too
TEXT = "small-pythia"  # the shipped language model, which pages on programs show
ADDRESSES = [
    *PAGES,
    *(f"{name}?run={SUMS}" for name in ("start", "trajectory", "claims", "runs")),
    *(f"{name}?run={TEXT}" for name in ("start", "trajectory", "patch", "attention")),
]
SIZES = {"phone": (360, 780), "wall": (3840, 2160), "laptop": (1280, 900)}


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_page_settles_without_an_error(site: Any, page: Any, name: str) -> None:
    skip_without_sums(name)
    open_page(page, site.at(f"#/1/{name}"))
    alerts = page.locator("main [role=alert]").all_inner_texts()
    if TEXT in name and not site.live:  # a copy without a server cannot ask a language model, and says so
        alerts = [alert for alert in alerts if "open it with 'bindscope serve' to ask it" not in alert]
    assert alerts == []
    assert page.locator("main section.panel, main article, main a, main table").count() > 0


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_page_fits_every_screen_and_axe_finds_nothing(served: Any, chromium: Any, name: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed")
    skip_without_sums(name)
    context = chromium.new_context(bypass_csp=True, reduced_motion="reduce")
    page = context.new_page()
    open_page(page, served.at(f"#/1/{name}"))
    page.add_script_tag(path=AXE)
    problems = []
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        page.wait_for_timeout(300)  # for the drawings to follow
        if page.evaluate("() => document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            problems.append(f"{size}: wider than the screen")
        if size == "wall":
            continue
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            problems += [f"{size}, {scheme}: {problem}" for problem in find_violations(page)]
    context.close()
    assert problems == [], "\n".join(problems)


def skip_without_sums(name: str) -> None:
    if (SUMS in name or name == "arithmetic") and SUMS not in [position.name for position in shipped_runs()]:
        pytest.skip("no run on modular addition is shipped")


def find_violations(page: Any) -> list[str]:
    """What axe-core objects to, each with the first elements it means."""
    found = page.evaluate("async () => (await axe.run(document)).violations")
    return [f"{rule['id']}: {[node['html'][:200] for node in rule['nodes'][:3]]}" for rule in found]
