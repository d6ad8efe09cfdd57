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
from browser.test_every_page import AXE, find_violations

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
    text = download(page, panel, "CSV", tmp_path).read_text()
    assert text.startswith("# Accuracy by depth")
    assert "# shown: accuracy_by_depth" in text
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    listed = [float(row["accuracy_by_depth"]) for row in rows if row["accuracy_by_depth"]]
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


def test_a_figure_for_a_paper_has_its_width_and_says_where_it_comes_from(page: Any, panel: Any, tmp_path: Path) -> None:
    page.evaluate("() => { document.documentElement.dataset.theme = 'dark'; }")
    panel.get_by_role("button", name="Download", exact=True).click()
    panel.get_by_role("button", name=re.compile("^Figure for a paper")).click()
    dialog = page.get_by_role("dialog", name=re.compile("^Figure for a paper"))
    dialog.get_by_label("Width").select_option("120")
    status = dialog.get_by_role("status")
    expect(status).to_contain_text("120 ×")
    assert float(re.search(r"([\d.]+) pt", status.inner_text())[1]) >= 6  # type: ignore[index]
    with page.expect_download() as waiting:
        dialog.get_by_role("button", name="Save SVG").click()
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    root = ElementTree.parse(path).getroot()
    assert root.get("width") == "120mm"
    texts = " ".join(root.itertext())
    for said in ("Accuracy by depth", "binding-laptop", "95 %", "depth 1", "depth 4"):
        assert said in texts
    assert "#ffffff" in path.read_text()
    assert "#e6e9ec" not in path.read_text()  # the ink of the dark page
    assert "rgb(230, 233, 236)" not in path.read_text()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_a_panel_is_one_file_that_opens_by_itself_and_says_what_is_pointed_at(
    page: Any, panel: Any, tmp_path: Path
) -> None:
    path = download(page, panel, "HTML", tmp_path)
    alone = page.context.new_page()
    asked: list[str] = []
    alone.on("request", lambda request: asked.append(request.url))
    alone.goto(path.as_uri())
    expect(alone.get_by_role("heading", name="Accuracy by depth")).to_be_visible()
    expect(alone.locator("strong")).to_have_text(panel.locator(".finding").inner_text())
    expect(alone.locator("body")).to_contain_text(re.compile(r"binding-laptop.*n = [\d,]+.*95 %"))
    words = alone.locator(".bindscope-reading", has_text="training step 1,200").locator("> g")
    expect(words).to_have_css("visibility", "hidden")
    alone.locator(".bindscope-reading", has_text="training step 1,200").locator("> rect").hover()
    expect(words).to_have_css("visibility", "visible")
    expect(words).to_contain_text("depth 1 ")
    alone.get_by_text("The numbers").click()
    assert alone.get_by_role("row").count() > 5
    assert asked == [path.as_uri()]
    assert "<script" not in path.read_text()
    alone.close()


def test_a_panel_of_a_static_copy_stands_in_a_frame_of_another_page(site: Any, page: Any, panel: Any) -> None:
    panel.get_by_role("button", name="Download", exact=True).click()
    panel.get_by_role("button", name=re.compile("^Embed")).click()
    expect(panel.get_by_role("status").first).to_contain_text("Copied")
    markup = page.evaluate("() => navigator.clipboard.readText()")
    if site.live:  # a server is shown in no frame of others: the markup names a copy
        assert '<iframe src="site/index.html#/1/trajectory?run=binding-laptop&amp;step=900' in markup
        return
    other = page.context.new_page()
    other.set_content(f"<h1>A page of another</h1>{markup}")
    frame = other.frame_locator("iframe")
    expect(frame.get_by_role("img", name=re.compile("ccuracy")).first).to_be_visible()
    expect(frame.get_by_role("navigation")).to_have_count(0)
    expect(frame.locator("section.panel:popover-open")).to_have_attribute("aria-label", "Accuracy by depth")
    whole = frame.get_by_role("link", name="Open in Bindscope").get_attribute("href")
    assert whole.startswith("#/1/trajectory?run=binding-laptop&step=900")
    assert "embed" not in whole
    other.close()


def test_a_server_is_shown_in_no_frame(served: Any, page: Any) -> None:
    policy = page.request.get(served.address).headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy


def test_the_table_opens_on_the_measure_that_is_drawn(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/patch?run=binding-laptop&step=900&patch.of=mean&patch.metric=kl"))
    panel = page.get_by_role("region", name="Patch grid, mean over pairs", exact=True)
    panel.get_by_role("button", name="Table").click()
    expect(panel.get_by_label("Numbers")).to_contain_text("what is drawn: kl")
    expect(panel.locator("caption")).to_contain_text(": kl")


def test_a_panel_can_fill_the_window_and_escape_brings_it_back(page: Any, panel: Any) -> None:
    before = panel.bounding_box()
    panel.get_by_role("button", name="Maximise").click()
    large = page.get_by_role("dialog", name="Accuracy by depth").bounding_box()
    assert large["width"] > 1.5 * before["width"]
    drawing = page.get_by_role("dialog", name="Accuracy by depth").get_by_role("img").first
    assert drawing.bounding_box()["height"] > 0.6 * large["height"]
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


def test_a_panel_in_a_file_or_alone_has_nothing_that_axe_objects_to(served: Any, chromium: Any, tmp_path: Path) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed")
    context = chromium.new_context(bypass_csp=True, reduced_motion="reduce")
    page = context.new_page()
    open_page(page, served.at(ADDRESS))
    whole = page.get_by_role("region", name="Accuracy by depth", exact=True)
    saved = download(page, whole, "HTML", tmp_path)
    alone = served.at(f"{ADDRESS}&embed.panel=Accuracy by depth")
    for address, width in ((saved.as_uri(), 1280), (alone, 1280), (alone, 390)):
        page.set_viewport_size({"width": width, "height": 600})
        page.goto("about:blank")
        page.goto(address)
        page.get_by_role("heading", name="Accuracy by depth").wait_for()
        page.wait_for_load_state("networkidle")
        page.add_script_tag(path=AXE)
        assert find_violations(page) == []
        assert not page.evaluate("() => document.documentElement.scrollWidth > document.documentElement.clientWidth")
    context.close()
