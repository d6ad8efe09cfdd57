"""Pages that show what is saved with a run: a click leads on, numbers agree with each other, figures are there."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from browser.opening import open_page


def test_a_point_on_a_curve_moves_the_slider(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/trajectory?run=binding-laptop"))
    crosshair = page.get_by_role("slider", name="Accuracy over training: training step")
    crosshair.press("Home")
    crosshair.press("Enter")
    expect(page).to_have_url(re.compile(r"[?&]step=0\b"))


def test_a_cell_of_programs_over_checkpoints_leads_to_that_program_and_step(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/checkpoint?run=binding-laptop&step=900"))
    grid = page.get_by_role("grid", name="Programs over checkpoints")
    cell = grid.get_by_role("gridcell").first
    cell.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"[?&]step=3700\b"))
    expect(page).to_have_url(re.compile(r"[?&]program="))


def test_every_view_of_a_checkpoint_counts_the_same_programs(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/checkpoint?run=binding-laptop&step=900"))
    bars = page.get_by_role("region", name="Accuracy by attribute").get_by_role("listitem").all_inner_texts()
    counted = sum(int(re.search(r"n = (\d+)", text)[1]) for text in bars)  # type: ignore[index]
    flows = page.get_by_role("region", name="Where predictions come from").inner_text()
    assert f"{counted} programs in all" in flows


def test_flips_between_two_checkpoints_add_up(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/compare?run=binding-laptop&a=900&b=3700"))
    text = page.get_by_role("region", name="Right and wrong at A and B").inner_text()
    both, lost, won, neither = (
        int(re.search(rf"(\d+)\s+[\d.]+ %\s+{kind}", text)[1])  # type: ignore[index]
        for kind in ("both right", "right → wrong", "wrong → right", "both wrong")
    )
    n = both + lost + won + neither
    assert f"From A to B {won or 'none'} of {n} programs turned right and {lost or 'none'} wrong" in text
    page.get_by_role("region", name="Programs that changed").get_by_role(
        "button", name=re.compile(r"#\w:")
    ).first.click()
    expect(page).to_have_url(re.compile(r"[?&]program="))


def test_every_claim_stands_in_the_table_and_opens_its_figure(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/claims?run=binding-laptop"))
    table = page.get_by_role("region", name="Published claims against this run")
    verdicts = re.findall(r"(?:✓|≠|–|\?) (replicates|differs|inconclusive|not testable)", table.inner_text())
    assert len(verdicts) == 12
    table.get_by_role("button", name=re.compile("^VB1 ")).click()
    figure = table.get_by_role("img").first
    expect(figure).to_be_visible()
    expect(figure).to_have_js_property("complete", True)
    assert figure.evaluate("image => image.naturalWidth") > 100


def test_verdicts_can_be_filtered(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/claims?run=binding-plain"))
    table = page.get_by_role("region", name="Published claims against this run")
    wanted = table.get_by_role("combobox", name="Verdict")
    option = wanted.get_by_role("option").filter(has_text="not testable").inner_text()
    wanted.select_option(label=option)
    expected = int(re.search(r"\((\d+)\)", option)[1])  # type: ignore[index]
    expect(table.get_by_role("rowheader")).to_have_count(expected)


def test_the_lens_shows_every_layer_and_token(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/logits?run=binding-plain&program=a=5;b=a;c=3;!b:"))
    grid = page.get_by_role("region", name="What each layer would answer").get_by_role("grid")
    assert int(grid.get_attribute("aria-colcount")) >= 15
    assert int(grid.get_attribute("aria-rowcount")) >= 7
