"""Takes the picture of the Patch page in docs/web.md, with Chromium.

python docs/figures/web.py
"""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

from bindscope.cli.serve import served
from bindscope.runs.locate import shipped_runs
from bindscope.web.lab import Lab

HERE = Path(__file__).parent
ADDRESS = "#/1/patch?run=binding-laptop&step=3700&patch.metric=logit_difference&patch.sites=L2.resid_pre@10"


def take_picture(address: str, path: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce")
        page.goto(address + ADDRESS)
        page.get_by_text("top answer").first.wait_for()
        page.wait_for_load_state("networkidle")
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    shipped = shipped_runs()
    with served(Lab.open(shipped, read_only=shipped), port=0) as address:
        take_picture(address, HERE / "web-patch.png")
