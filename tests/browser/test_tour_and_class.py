"""The tour and the exercises as a reader goes through them, on the server and in a static copy."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from browser.opening import open_page

BEGIN = "#/1/start?run=binding-laptop"
PREDICTIONS = "class.halfway=another%20digit&class.overlap=not%20covered&class.fewest=last%20layer%20only"


def tour(page: Any) -> Any:
    return page.get_by_role("region", name="Tour", exact=True)


def test_the_tour_points_out_one_panel_at_every_stop_and_leaves_the_page_as_it_was(site: Any, page: Any) -> None:
    open_page(page, site.at(f"{BEGIN}&step=900"))
    before = page.url
    page.get_by_role("link", name="Begin the tour").click()
    total = int(re.findall(r"1 of (\d+)", tour(page).inner_text())[0])
    assert total == 8
    for stop in range(1, total + 1):
        expect(tour(page)).to_contain_text(f"{stop} of {total}")
        expect(page).to_have_url(re.compile(rf"tour\.stop={stop}\b"))
        expect(page.locator("main [data-toured]")).to_have_count(1)
        if stop < total:
            tour(page).get_by_role("link", name="Next").click()
    page.go_back()
    expect(tour(page)).to_contain_text(f"{total - 1} of {total}")
    tour(page).get_by_role("link", name="Leave the tour").click()
    expect(tour(page)).to_have_count(0)
    expect(page).to_have_url(before)
    expect(page.locator("[data-toured]")).to_have_count(0)


def test_the_tour_is_walked_by_keyboard_and_found_again_from_the_address(site: Any, page: Any) -> None:
    open_page(page, site.at(BEGIN))
    page.get_by_role("link", name="Begin the tour").click()
    expect(tour(page)).to_contain_text("1 of 8")
    page.keyboard.press("n")
    expect(tour(page)).to_contain_text("2 of 8")
    page.reload()
    expect(tour(page)).to_contain_text("2 of 8")
    page.keyboard.press("Shift+N")
    expect(tour(page)).to_contain_text("1 of 8")
    page.get_by_role("link", name="Runs", exact=True).click()
    tour(page).get_by_role("link", name="Return to this stop").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("How does a transformer")


def test_a_run_on_sums_has_a_tour_through_the_parts_of_arithmetic(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/start?run=assign-add"))
    page.get_by_role("link", name="What makes a jump").click()
    expect(page.get_by_role("tab", name="Jumps")).to_have_attribute("aria-selected", "true")
    expect(page.locator("main [data-toured]")).to_have_attribute("aria-label", "Parts of another checkpoint")


def test_an_exercise_is_predicted_before_it_is_checked(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/class"))
    exercises = page.locator("main article")
    expect(exercises).to_have_count(10)
    first = exercises.first
    expect(first.get_by_role("button", name="Check")).to_be_disabled()
    expect(first.locator(".verdict")).to_have_count(0)
    first.get_by_text("Hint").click()
    expect(first.locator("details p")).to_be_visible()
    first.get_by_role("radio").first.check()
    expect(page).to_have_url(re.compile("class.halfway="))
    first.get_by_role("button", name="Check").click()
    told = first.locator(".verdict")
    expect(told).to_contain_text("The model says")
    said = re.findall(r"The model says (\d)", told.inner_text())[0]
    first.get_by_role("button", name="Predict again").click()
    first.get_by_role("radio", name=said, exact=True).check()
    first.get_by_role("button", name="Check").click()
    expect(told).to_contain_text("As you predicted")
    expect(page.locator("main [role=status]")).to_have_text("1 of 10 checked, 1 as predicted.")
    first.get_by_role("link", name="See it on its page").click()
    answer = page.get_by_role("region", name="What the model answers")
    expect(answer).to_contain_text(f"The model says {said}")


def test_a_sheet_is_in_the_address_and_goes_on_paper_without_answers(site: Any, page: Any) -> None:
    open_page(page, site.at(f"#/1/class?class.checked=halfway,overlap,fewest&{PREDICTIONS}"))
    expect(page.locator("main .verdict")).to_have_count(3)
    expect(page.locator("main [role=status]")).to_contain_text("3 of 10 checked")
    page.emulate_media(media="print")
    expect(page.locator("main .verdict").first).to_be_hidden()
    expect(page.locator("#menu")).to_be_hidden()
    expect(page.get_by_text("What I saw, and why").first).to_be_visible()
    expect(page.get_by_role("radio").first).to_be_visible()
    page.emulate_media(media="screen")


def test_pages_for_other_runs_stand_behind_one_line(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/start?run=assign-add"))
    menu = page.locator("#menu")
    expect(menu.get_by_role("link", name="Arithmetic")).to_be_visible()
    expect(menu.get_by_role("link", name="Patch")).to_be_hidden()
    menu.get_by_text(re.compile("for other runs")).click()
    expect(menu.get_by_role("link", name="Patch")).to_be_visible()


def test_leaving_arithmetic_asks_nothing_of_the_next_run(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/arithmetic?run=assign-add"))
    for address in ("#/1/symbols", "#/1/arithmetic?run=assign-add", "#/1/trajectory?run=binding-plain"):
        page.evaluate("hash => { location.hash = hash }", address)
        page.wait_for_load_state("networkidle")
        expect(page.locator("main [aria-busy=true]")).to_have_count(0)
