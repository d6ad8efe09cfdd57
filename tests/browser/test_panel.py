"""What every panel offers: a table, files, the way to make it again, and more room."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.opening import open_page

ADDRESS = "#/1/trajectory?run=binding-laptop&step=900"


@pytest.fixture
def panel(site: Any, page: Any) -> Any:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, site.at(ADDRESS))
    return page.get_by_role("region", name="Accuracy by depth", exact=True)


def download(page: Any, panel: Any, kind: str, folder: Path) -> Path:
    panel.get_by_role("button", name="Download", exact=True).click()
    with page.expect_download() as waiting:
        panel.get_by_role("button", name=re.compile(f"^{kind}")).click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def test_a_panel_can_be_kept_in_four_forms_that_agree(page: Any, panel: Any, tmp_path: Path) -> None:
    body = json.loads(download(page, panel, "JSON", tmp_path).read_text())
    accuracy = body["variables"]["accuracy_by_depth"]
    with download(page, panel, "CSV", tmp_path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    listed = [float(row["value"]) for row in rows if row["variable"] == "accuracy_by_depth" and row["value"]]
    assert listed == pytest.approx([value for value in accuracy["values"] if value is not None])
    svg = ElementTree.parse(download(page, panel, "SVG", tmp_path)).getroot()
    assert svg.tag.endswith("svg")
    assert len(list(svg.iter())) > 10
    assert download(page, panel, "PNG", tmp_path).read_bytes().startswith(b"\x89PNG")


def test_a_panel_is_also_a_table(panel: Any) -> None:
    panel.get_by_role("button", name="Table").click()
    table = panel.get_by_role("table")
    expect(table).to_be_visible()
    assert table.get_by_role("row").count() > 5
    panel.get_by_role("button", name="Table").click()
    expect(table).to_be_hidden()


def test_a_panel_says_how_to_make_it_again(page: Any, panel: Any) -> None:
    panel.get_by_role("button", name="Copy as command").click()
    expect(panel.get_by_role("status").first).to_have_text("Copied")
    assert page.evaluate("() => navigator.clipboard.readText()").startswith("bindscope trajectory")
    panel.get_by_role("button", name="Copy as Python").click()
    expect(panel.get_by_role("status").first).to_have_text("Copied")
    page.wait_for_timeout(200)
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert "import" in copied
    compile(copied, "copied", "exec")


def test_a_panel_can_fill_the_window_and_escape_brings_it_back(page: Any, panel: Any) -> None:
    before = panel.bounding_box()
    panel.get_by_role("button", name="Maximise").click()
    large = page.get_by_role("dialog", name="Accuracy by depth").bounding_box()
    assert large["width"] > 1.5 * before["width"]
    page.keyboard.press("Escape")
    after = page.get_by_role("region", name="Accuracy by depth", exact=True).bounding_box()
    assert after["width"] == pytest.approx(before["width"], abs=2)


def test_provenance_names_run_n_and_interval(panel: Any) -> None:
    expect(panel).to_contain_text(re.compile(r"binding-laptop.*n = [\d,]+.*95 %"))


def test_a_term_explains_itself_by_keyboard(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/program"))
    term = page.get_by_role("button", name="distractors", exact=True)
    term.focus()
    page.keyboard.press("Enter")
    card = page.locator(":popover-open")
    expect(card).to_be_visible()
    assert len(card.inner_text()) > 20
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
