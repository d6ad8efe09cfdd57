"""What is always there: the checkpoint slider, the address, the back button, pins, keys and colours."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from browser.opening import open_page


def step_of(page: Any) -> int:
    text = page.get_by_role("slider", name="Checkpoint").get_attribute("aria-valuetext")
    found = re.search(r"step ([\d,]+)", text)
    assert found, text
    return int(found[1].replace(",", ""))


def test_arrows_move_the_slider_from_checkpoint_to_checkpoint_and_the_address_follows(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/trajectory?run=binding-laptop&step=700"))
    slider = page.get_by_role("slider", name="Checkpoint")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("700.*heuristic"))
    slider.press("ArrowRight")
    expect(page).to_have_url(re.compile("step=900"))
    slider.press("Shift+ArrowLeft")
    expect(page).to_have_url(re.compile("step=300"))
    slider.press("Home")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("step 0 .*random"))
    slider.press("End")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("3,700.*systematic"))


def test_an_address_without_a_step_leaves_a_page_that_chose_its_own(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/checkpoint?run=binding-laptop"))
    expect(page).to_have_url(re.compile("checkpoint.*step=[1-9]"))
    open_page(page, site.at("#/1/logits?run=binding-laptop"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Logits")
    expect(page).to_have_url(re.compile(r"logits\?run=binding-laptop$"))
    open_page(page, site.at("#/1/checkpoint?run=binding-laptop"))
    page.get_by_role("link", name="Logits", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Logits")
    expect(page).to_have_url(re.compile(r"logits\?run=binding-laptop$"))


def test_a_fresh_address_names_the_run_that_is_shown_and_binds_no_page_to_it(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/trajectory"))
    shown = page.get_by_role("combobox", name="run", exact=True).input_value()
    expect(page).to_have_url(re.compile(rf"trajectory\?run={shown}$"))
    page.get_by_text("for other runs").click()
    page.get_by_role("link", name="Arithmetic", exact=True).click()
    expect(page.get_by_role("combobox", name="run", exact=True)).to_have_value("assign-add")


def test_the_back_button_returns_to_the_page_before(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/start?run=binding-laptop"))
    page.get_by_role("link", name="Logits", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Logits")
    page.get_by_role("link", name="Claims", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Claims")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Logits")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("How does a transformer")


def test_the_address_alone_brings_everything_back(site: Any, page: Any) -> None:
    address = (
        "#/1/program?run=binding-plain&step=300&a=100&b=600&program=a=5;b=a;c=3;!b:&counterfactual=a=7;b=a;c=3;!b:"
    )
    open_page(page, site.at(address))
    expect(page.get_by_role("combobox", name="run", exact=True)).to_have_value("binding-plain")
    expect(page.get_by_role("textbox", name=re.compile("^Program"))).to_have_value("a=5\nb=a\nc=3\n#b:")
    assert step_of(page) == 300
    for name, step in (("A", 100), ("B", 600)):
        assert f"{name.lower()}={step}" in page.url


def test_pins_are_set_by_key_and_kept_in_the_address(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/compare?run=binding-laptop&step=900"))
    page.keyboard.press("a")
    expect(page).to_have_url(re.compile(r"[?&]a=900"))
    page.get_by_role("slider", name="Checkpoint").press("End")
    page.keyboard.press("b")
    expect(page).to_have_url(re.compile(r"[?&]b=3700"))


def test_a_question_mark_lists_the_keys_and_escape_closes_the_list(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/start"))
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("Shift")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_colours_change_and_stay_changed(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/start"))
    paper = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate(paper) != light
    page.reload()
    page.locator("main h1").first.wait_for()
    assert page.evaluate(paper) != light


def test_an_address_with_unknown_parts_says_so_and_still_opens(site: Any, page: Any) -> None:
    page.goto(site.at("#/1/patsh?run=binding-lap"))
    expect(page.locator("main")).to_contain_text(re.compile("patsh|binding-lap"))
    page.goto(site.at("#/99/%E0%A4%A?run=%"))
    expect(page.locator("main h1").first).to_be_visible()


def test_play_moves_through_the_checkpoints(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/trajectory?run=binding-plain&step=0"))
    page.get_by_role("combobox", name="Checkpoints a second").select_option("8")
    page.get_by_role("button", name="Play").click()
    expect(page).to_have_url(re.compile(r"step=(?!0\b)\d+"))
    page.get_by_role("button", name="Pause").click()
