"""Pages that question the model: on the server, and in a static copy by the reader's own browser."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import expect

from browser.opening import open_page, settle

PAIR = "run=binding-laptop&step=3700&program=c=1;a=5;b=a;d=2;!b:&counterfactual=c=1;a=7;b=a;d=2;!b:"
LONG = 90_000  # milliseconds: a grid in the browser of a busy machine


def focus_cell(page: Any, name: str | re.Pattern[str]) -> Any:
    grid = page.get_by_role("grid", name=name)
    cell = grid.get_by_role("gridcell").first
    expect(cell).to_be_visible(timeout=LONG)
    settle(page)
    cell.focus()
    return grid


def test_patching_the_changed_constant_changes_the_answer(site: Any, page: Any) -> None:
    open_page(page, site.at(f"#/1/patch?{PAIR}&patch.sites=L0.resid_pre@6"))
    patched = page.get_by_role("region", name=re.compile("^Patched"))
    expect(patched).to_contain_text(re.compile("7.*top answer"), timeout=LONG)
    after = patched.get_by_role("figure", name="After the patch")
    expect(after.get_by_role("listitem").filter(has_text=re.compile("^7"))).to_contain_text(re.compile(r"(9\d|100)"))


def test_cells_are_picked_and_joined_by_keyboard_and_kept_in_the_address(site: Any, page: Any) -> None:
    open_page(page, site.at(f"#/1/patch?{PAIR}"))
    focus_cell(page, re.compile("after patching each cell"))
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"patch\.sites=L4\.resid_pre@18\b"))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+Enter")
    expect(page).to_have_url(re.compile(r"patch\.sites=L4\.resid_pre@18;L4\.resid_pre@17\b"))
    expect(page.get_by_role("list", name="Patched together").get_by_role("code")).to_have_count(2)
    page.get_by_role("button", name="Leave out L4.resid_pre@17").click()
    expect(page).to_have_url(re.compile(r"patch\.sites=L4\.resid_pre@18(&|$)"))


def test_the_mean_over_pairs_and_one_cell_over_training_need_no_model(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/patch?run=binding-plain"))
    page.get_by_role("combobox", name="Of", exact=True).select_option(label="the mean over pairs")
    focus_cell(page, re.compile("mean over pairs"))
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    over = page.get_by_role("region", name=re.compile("over all checkpoints"))
    expect(over.get_by_role("slider")).to_be_visible(timeout=LONG)
    expect(page.locator("main")).to_contain_text("n = 64")


def test_attention_shows_every_head_and_taking_them_all_out_changes_the_answer(site: Any, page: Any) -> None:
    open_page(page, site.at(f"#/1/attention?{PAIR}"))
    heads = page.get_by_role("group", name="Heads, a row for each layer")
    expect(heads.get_by_role("button")).to_have_count(20, timeout=LONG)
    ablation = page.get_by_role("region", name="Take parts out")
    expect(ablation).to_contain_text(re.compile("The whole model says 5"), timeout=LONG)
    for button in ablation.get_by_role("button", name=re.compile(r"^H\d|\.H\d")).all():
        button.click()
    expect(ablation).to_contain_text(re.compile(r"It said 5 .*; without these parts it says (?!5)\S"), timeout=LONG)


def test_swapping_a_subspace_is_live_on_a_server_and_a_command_elsewhere(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/subspace?run=binding-plain"))
    swapped = page.get_by_role("region", name=re.compile("^Swapped"))
    expected = "After the swap the model says" if site.live else "bindscope "
    expect(swapped).to_contain_text(expected, timeout=LONG)


def test_points_of_a_subspace_move_with_the_slider(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/subspace?run=binding-plain"))
    points = page.get_by_role("listbox").first
    expect(points).to_be_visible(timeout=LONG)
    picture = points.inner_html()
    page.get_by_role("slider", name="Checkpoint").press("Home")
    settle(page)
    assert page.get_by_role("listbox").first.inner_html() != picture


def test_runs_are_compared_setting_by_setting(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/runs?run=binding-plain"))
    settings = page.get_by_role("region", name="Settings", exact=True)
    settings.get_by_role("combobox", name="Beside").select_option("binding-laptop")
    expect(settings).to_contain_text("n_heads")


def test_a_directory_that_holds_no_run_is_refused_in_one_sentence(served: Any, chromium: Any) -> None:
    context = chromium.new_context()
    page = context.new_page()
    open_page(page, served.at("#/1/runs"))
    form = page.get_by_role("region", name="Open another run")
    form.get_by_role("textbox").fill("nowhere/at/all")
    form.get_by_role("textbox").press("Enter")
    expect(form.get_by_role("alert")).to_contain_text("run")
    context.close()


def test_a_circuit_is_found_and_annotated_and_a_link_shares_the_note(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/patch?run=binding-plain"))
    panel = page.get_by_role("region", name="A circuit of edges")
    if not site.live:
        expect(panel).to_contain_text("bindscope edges binding-plain")
        return
    panel.get_by_role("button", name="Find the circuit").click()
    expect(panel).to_contain_text(re.compile(r"of 388 edges are \d+ % faithful"), timeout=LONG)
    expect(panel).to_contain_text("Attribution against 24 edges patched exactly")
    panel.get_by_role("option", name="L1.H0", exact=True).click()
    panel.get_by_label("Note").fill("copies the digit")
    panel.get_by_label("Note").press("Enter")
    expect(page).to_have_url(re.compile(r"circuit\.notes=L1\.H0:copies%20the%20digit"))
    shared = page.url
    open_page(page, site.at("#/1/start"))
    page.goto(shared)
    expect(page.get_by_role("region", name="A circuit of edges")).to_contain_text(
        "1  L1.H0: copies the digit", timeout=LONG
    )


def test_what_moves_where_is_drawn_and_an_arrow_can_be_patched_and_noted(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/patch?run=binding-plain"))
    flow = page.get_by_role("region", name="What moves where")
    expect(flow).to_contain_text(re.compile(r"The value sits at ‘\d’ \(rhs 1\)"), timeout=LONG)
    arrows = flow.get_by_role("listbox", name=re.compile("What layers bring")).get_by_role("option")
    expect(arrows.first).to_have_attribute("aria-label", re.compile(r"L\d+ brings .* from .* to"), timeout=LONG)
    arrows.first.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"moves\.chosen="))
    flow.get_by_role("textbox", name="note").fill("copies the root")
    flow.get_by_role("button", name="Patch these heads there").click()  # straight from the note, which grew the drawing
    expect(page).to_have_url(re.compile("copies%20the%20root"))
    expect(page.get_by_role("region", name=re.compile("^Patched: this pair"))).to_contain_text(
        "top answer", timeout=LONG
    )
    flow.get_by_role("button", name=re.compile("^Download")).click()
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile("^JSON")).click()
    assert json.loads(download.value.path().read_text())["variables"]["note"]["values"] == ["copies the root"]


def test_a_second_run_stands_beside_the_first(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/patch?run=binding-plain&beside.with=binding-laptop"))
    expect(page.get_by_role("region", name=re.compile("^binding-plain at step"))).to_be_visible()
    other = page.get_by_role("region", name=re.compile("^binding-laptop at step"))
    expect(other.get_by_role("region", name="What moves where")).to_contain_text("The value sits at", timeout=LONG)
    page.get_by_role("combobox", name="Beside it").select_option("")
    expect(page.get_by_role("region", name="What moves where")).to_have_count(1)


def test_a_link_is_copied_with_run_and_step_and_a_step_that_is_not_saved_is_said(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/trajectory?run=binding-plain&step=999999"))
    expect(page.get_by_role("alert").first).to_contain_text("Step 999,999 of binding-plain is not saved here")
