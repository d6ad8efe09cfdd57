"""The tables of the replication report: every claim has numbers of its own, and a page without its markers is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from bindscope.cli.replication import BEGIN, END, HEADLINES, put_between_markers
from bindscope.errors import BindscopeError
from bindscope.studies.framework.verify import all_studies


def test_every_claim_has_numbers_for_its_line() -> None:
    assert set(HEADLINES) == {claim.id for study in all_studies() for claim in study.claims}


def test_only_what_stands_between_the_markers_is_rewritten(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    assert put_between_markers(page, "| new |") == f"before\n{BEGIN}\n\n| new |\n\n{END}\nafter\n"


def test_a_page_that_lost_a_marker_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\nold\n", encoding="utf-8")
    with pytest.raises(BindscopeError, match=r"page\.md: it needs one line"):
        put_between_markers(page, "| new |")
