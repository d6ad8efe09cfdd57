"""Takes the pictures of the Patch page in docs/web.md and README.md, with Chromium.

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
PROGRAMS = "program=a=5;t=6;k=9;c=k;d=a;b=c;!b:&counterfactual=a=5;t=6;k=4;c=k;d=a;b=c;!b:"
PICTURES = {  # file → address, what must be there before the picture is taken, and the height of the window
    "web-patch.png": (
        "#/1/patch?run=binding-laptop&step=3700&patch.metric=logit_difference&patch.sites=L2.resid_pre@10", "top answer", 1000,
    ),
    "web-circuit.png": (f"#/1/patch?run=binding-deep&step=3290&{PROGRAMS}", "What moves where", 1100),
}  # fmt: skip


def take_picture(address: str, path: Path, awaited: str, height: int) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": height}, reduced_motion="reduce")
        page.goto(address)
        page.get_by_text(awaited).first.wait_for()
        page.wait_for_timeout(10_000)  # until the last panel in view is drawn
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    shipped = shipped_runs()
    with served(Lab.open(shipped, read_only=shipped), port=0) as address:
        for name, (place, awaited, height) in PICTURES.items():
            take_picture(address + place, HERE / name, awaited, height)
