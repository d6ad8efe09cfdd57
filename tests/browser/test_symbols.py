"""Page Symbols as a reader uses it, on the server and in a static copy where the browser computes kernels itself."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from bindscope.studies.framework.experiments import SHIPPED_DATASETS
from browser.opening import open_page

ADDRESS = "#/1/symbols"
TYPED = re.compile("Templates, spaces between")


def panel(page: Any, title: str) -> Any:
    return page.get_by_role("region", name=title, exact=True)


def test_typed_templates_are_checked_sampled_and_judged(site: Any, page: Any) -> None:
    open_page(page, site.at(f"{ADDRESS}?symbols.tab=templates"))
    kernel, sequences = panel(page, "Can it be learnt?"), panel(page, "Sequences they make")
    expect(kernel).to_contain_text("learnable: N is not singular: the smallest eigenvalue of N is 0.00211")
    expect(page.get_by_role("slider", name="Checkpoint")).to_have_count(0)  # no run matters here
    page.get_by_role("textbox", name=TYPED).fill("AB Ax")
    expect(panel(page, "Templates")).to_contain_text("AB and Ax are not disjoint: both match s0 x")
    expect(kernel).to_contain_text("not covered", timeout=600_000)
    expect(kernel).to_contain_text("s0 x matches both AB and Ax")
    expect(kernel.get_by_role("grid")).to_have_count(1)
    expect(sequences.locator("tbody tr")).to_have_count(10)
    expect(sequences.locator("tbody tr").last).to_contain_text(re.compile("^Ax"))
    expect(page).to_have_url(re.compile("symbols.templates=AB%20Ax"))
    page.get_by_role("textbox", name=TYPED).fill("AB A'")
    expect(panel(page, "Templates")).to_contain_text("column 2: a quoted token needs a closing '")
    expect(kernel).not_to_contain_text("not covered")  # no verdict stands beside templates that it is not about
    expect(sequences.locator("tbody tr")).to_have_count(0)
    page.get_by_role("textbox", name=TYPED).fill("")
    expect(panel(page, "Templates")).to_contain_text("Write at least one template.")
    expect(kernel).to_contain_text("Write templates that can be read")
    expect(kernel.get_by_role("grid")).to_have_count(0)


def test_an_address_brings_back_templates_and_settings(site: Any, page: Any) -> None:
    open_page(
        page,
        site.at(f"{ADDRESS}?run=nobody&symbols.templates=AA%20AB&symbols.labels=1,-1&symbols.gamma=0&symbols.cls=off"),
    )
    kernel = panel(page, "Can it be learnt?")
    expect(kernel).to_contain_text("not learnable: N is singular", timeout=600_000)
    expect(kernel.get_by_role("checkbox", name="CLS at the end")).not_to_be_checked()
    kernel.get_by_role("checkbox", name="CLS at the end").check()
    expect(page).not_to_have_url(re.compile("symbols.cls"))


@pytest.mark.skipif(not (SHIPPED_DATASETS / "same-different.nc").is_file(), reason="no curves are shipped")
def test_a_model_is_switched_off_in_the_address(site: Any, page: Any) -> None:
    open_page(page, site.at(ADDRESS))
    curves = panel(page, "What each model needs")
    assert curves.get_by_role("img").count() > 4  # so many models are drawn one by one
    curves.get_by_role("combobox", name="Show").select_option("together")
    expect(curves.get_by_role("img")).to_have_count(1)
    curves.get_by_role("button", name="transformer", exact=True).click()
    expect(page).to_have_url(re.compile("symbols.off=transformer"))
    expect(curves.get_by_role("button", name="transformer", exact=True)).to_have_attribute("aria-pressed", "false")
    curves.get_by_role("combobox", name="Task").select_option("aba-abb")
    expect(page).to_have_url(re.compile("symbols.task=aba-abb"))


def test_claims_open_to_their_numbers(site: Any, page: Any) -> None:
    open_page(page, site.at(f"{ADDRESS}?claims.open=AS1"))
    claims = panel(page, "Claims about symbols")
    expect(claims.get_by_role("row").filter(has_text="AS8")).to_have_count(1)
    expect(claims).to_contain_text("Criterion")
