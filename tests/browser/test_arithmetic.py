"""Page Arithmetic as a reader uses it, on the server and in a static copy where the browser runs the model itself."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from bindscope.runs.directory import Run
from bindscope.runs.locate import SHIPPED_DIRECTORY
from bindscope.studies.assign_add.learning.phases import published_spikes, spikes_of
from bindscope.studies.framework.trajectory import trajectory_dataset
from browser.opening import open_page, settle

RUN = SHIPPED_DIRECTORY / "assign-add"
pytestmark = pytest.mark.skipif(not RUN.is_dir(), reason="no run on modular addition is shipped")
ADDRESS = "#/1/arithmetic?run=assign-add"


def panel(page: Any, title: str) -> Any:
    return page.get_by_role("region", name=title, exact=True)


def test_a_typed_sum_is_answered_and_a_mistake_is_pointed_at(site: Any, page: Any) -> None:
    open_page(page, site.at(f"{ADDRESS}&arithmetic.tab=sum"))
    editor = page.get_by_role("textbox", name=re.compile("Assignments, then"))
    editor.fill("c=1 b=17 | b+19")
    answer = panel(page, "What the model answers to it")
    expect(answer).to_contain_text("36 (answer)", timeout=600_000)
    expect(answer).to_contain_text(re.compile(r"The model says \d+ \("))
    expect(page).to_have_url(re.compile("program=c=1"))
    expect(panel(page, "Where it attends").get_by_role("grid")).to_have_count(2)
    editor.fill("c=1 b=17 | q+19")
    expect(page.get_by_role("alert")).to_contain_text("column 12: 'q' is not a number from 0 to 58")
    expect(answer).to_contain_text("36 (answer)")  # the last one that could be read stays


def test_the_circuit_follows_the_slider(site: Any, page: Any) -> None:
    steps = Run.open(RUN).steps
    open_page(page, site.at(f"{ADDRESS}&arithmetic.tab=weights&step={steps[-2]}"))
    copies = panel(page, "Layer 2: copies of variables")
    expect(copies).to_contain_text(f"step {steps[-2]:,}")
    page.get_by_role("slider", name="Checkpoint").focus()
    page.keyboard.press("ArrowLeft")
    expect(copies).to_contain_text(f"step {steps[-3]:,}")
    expect(copies).to_contain_text(re.compile(r"For \d+ of 12 variables the largest score is their own copy’s"))


def test_score_terms_are_those_of_the_slider_and_of_the_chosen_variable(site: Any, page: Any) -> None:
    open_page(page, site.at(f"{ADDRESS}&arithmetic.tab=weights&step=11200"))
    terms = panel(page, "Why = attends to a value in layer 2")
    chosen = terms.get_by_role("combobox", name="Value of")
    expect(chosen).to_have_value("l")  # what rises most across the last spike
    expect(terms).to_contain_text(
        "At step 11,200 the value of l scores 2.5 as first operand, of which 2.0 is the match"
    )
    expect(terms.get_by_role("grid")).to_have_count(2)
    chosen.select_option("a")
    expect(page).to_have_url(re.compile("arithmetic.variable=a"))
    expect(terms).to_contain_text("a as second operand")


def test_a_neuron_is_chosen_by_its_number(site: Any, page: Any) -> None:
    open_page(page, site.at(f"{ADDRESS}&arithmetic.tab=neurons"))
    chosen = panel(page, "One neuron beside its fit")
    number = chosen.get_by_role("spinbutton", name="Neuron")
    number.fill("7")
    number.press("Enter")
    expect(chosen).to_contain_text(re.compile(r"Neuron 7: .*cos\(2π·\d+·n/59"))
    expect(page).to_have_url(re.compile("arithmetic.neuron=7"))


def test_transplanting_everything_gives_the_donor(site: Any, page: Any) -> None:
    steps = Run.open(RUN).steps
    ends = f"arithmetic.receiver={steps[0]}&arithmetic.donor={steps[-1]}"
    open_page(page, site.at(f"{ADDRESS}&{ends}&arithmetic.parts="))
    asked = panel(page, "Parts of another checkpoint")
    expect(asked).to_contain_text("Choose at least one part.")
    asked.get_by_role("button", name="everything", exact=True).click()
    expect(asked).to_contain_text("everything. Of the way from", timeout=600_000)
    told = re.findall(r"(\d+) %", asked.locator("p[aria-live]").inner_text())
    assert set(told) == {"100"}


def test_the_papers_two_spikes_come_first_and_a_pin_moves_the_transplant(site: Any, page: Any) -> None:
    trajectory = trajectory_dataset(Run.open(RUN).metrics, family="assign_add")
    first, second = published_spikes(spikes_of(trajectory))
    assert first is not None
    assert second is not None
    open_page(page, site.at(ADDRESS))
    asked, splits = panel(page, "Parts of another checkpoint"), panel(page, "Nine splits over training")
    page.get_by_role("tab", name="Jumps").click()
    across = asked.get_by_role("button", name=re.compile("Across spike"))
    expect(across).to_have_text([f"Across spike {spike.number}" for spike in (first, second)])
    across.last.click()
    receiver = asked.get_by_role("combobox", name="Receiver")
    expect(receiver).to_have_value(str(second.before_step))
    page.get_by_role("tab", name="Learning").click()
    splits.get_by_role("button", name="Pin as A and B").first.click()
    page.get_by_role("tab", name="Jumps").click()
    expect(receiver).to_have_value(str(first.before_step))


def test_a_page_about_programs_offers_the_way_out(site: Any, page: Any) -> None:
    page.goto(site.at("#/1/patch?run=assign-add"))
    notice = page.get_by_role("alert")
    expect(notice).to_contain_text("about runs on binding or code; assign-add is a run on assign_add")
    expect(notice.get_by_role("link", name="Open it with binding-neutral")).to_be_visible()
    notice.get_by_role("link", name="Stay with assign-add and open Arithmetic").click()
    expect(page.get_by_role("heading", name="Arithmetic", level=1)).to_be_visible()
    settle(page)


def test_without_a_run_in_the_address_the_page_takes_one_on_sums(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/arithmetic"))
    expect(page).to_have_url(re.compile("run=assign-add"))
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page.get_by_role("alert")).to_contain_text("The page Program is about runs on binding")


def test_tabs_are_walked_by_keyboard_and_kept_in_the_address(site: Any, page: Any) -> None:
    open_page(page, site.at(ADDRESS))
    page.get_by_role("tab", name="Learning").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="One sum")).to_be_focused()
    expect(page).to_have_url(re.compile("arithmetic.tab=sum"))
    expect(panel(page, "Nine splits over training")).to_have_count(0)
    page.keyboard.press("End")
    expect(panel(page, "Parts of another checkpoint")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("tab", name="One sum")).to_have_attribute("aria-selected", "true")
