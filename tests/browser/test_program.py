"""A reader writes programs: errors at their line, the graph, the model's answer, and a second program to patch with."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from browser.opening import open_page, settle

PROGRAM = "#/1/program?run=binding-plain&step=1300&program=a=5;b=a;c=3;d=b;!d:"


def editor(page: Any) -> Any:
    return page.get_by_role("textbox", name=re.compile("^Program"))


def test_a_mistake_is_named_with_its_line_and_the_last_good_program_stays(site: Any, page: Any) -> None:
    open_page(page, site.at(PROGRAM))
    editor(page).fill("a=5\nb=q\nc=3\n#b:")
    expect(page.get_by_role("region", name="The program")).to_contain_text("line 2: 'q' is used before it is assigned.")
    assert "program=a=5;b=a;c=3;d=b;!d:" in page.url
    editor(page).fill("a=5\nb=a\nb=3\n#b:")
    expect(page.get_by_role("region", name="The program")).to_contain_text("line 3: 'b' is assigned twice")


def test_a_good_program_is_answered_and_kept_in_the_address(site: Any, page: Any) -> None:
    open_page(page, site.at(PROGRAM))
    editor(page).fill("a=5\nb=a\nc=3\n#b:")
    expect(page).to_have_url(re.compile(re.escape("program=a=5;b=a;c=3;!b:")))
    settle(page)
    expect(page.get_by_role("region", name="What the model answers")).to_contain_text(re.compile(r"The model says \d"))
    page.reload()
    expect(editor(page)).to_have_value("a=5\nb=a\nc=3\n#b:")


def test_the_chain_is_followed_step_by_step(site: Any, page: Any) -> None:
    open_page(page, site.at(PROGRAM))
    graph = page.get_by_role("region", name="Who takes a value from whom")
    said = []
    for _ in range(4):
        graph.get_by_role("button", name=re.compile("Next")).click()
        said.append(graph.inner_text())
    assert len(set(said)) == 4
    assert "5" in said[-1]


def test_a_counterfactual_changes_one_token_and_is_answered_too(site: Any, page: Any) -> None:
    open_page(page, site.at(PROGRAM))
    region = page.get_by_role("region", name="Counterfactual", exact=True)
    region.get_by_role("combobox", name="to").select_option("8")
    expect(page).to_have_url(re.compile(re.escape("counterfactual=a=8;b=a;c=3;d=b;!d:")))
    settle(page)
    answers = page.get_by_role("region", name="What the model answers")
    expect(answers.get_by_text(re.compile("counterfactual: The model says"))).to_be_visible()


def test_an_example_can_be_chosen(site: Any, page: Any) -> None:
    open_page(page, site.at("#/1/program?run=binding-laptop"))
    before = editor(page).input_value()
    page.get_by_role("combobox", name="Example").select_option(index=2)
    expect(editor(page)).not_to_have_value(before)


def test_a_new_program_of_the_asked_depth_is_drawn(served: Any, page: Any) -> None:
    open_page(page, served.at("#/1/program?run=binding-laptop"))
    group = page.get_by_role("group", name="Draw a new one")
    group.get_by_role("combobox", name="depth").select_option("2")
    group.get_by_role("button", name="Draw another").click()
    expect(page.get_by_role("region", name="The program")).to_contain_text("depth 2")
