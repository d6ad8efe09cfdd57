from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.cli.demo import find_free
from bindscope.cli.main import run
from bindscope.cli.report import choose_steps
from bindscope.measures.phases import Phase


@given(
    st.sets(st.integers(0, 5000), min_size=1, max_size=60).map(sorted),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 5000)), max_size=3),
)
def test_a_report_shows_kept_steps_only_and_always_the_first_and_last(
    kept: list[int], spans: list[tuple[int, int]]
) -> None:
    phases = [Phase("heuristic", min(span), max(span), 0.5, 3, 1.0) for span in spans]
    chosen = choose_steps(kept, phases, n=8)
    assert set(chosen) <= set(kept)
    assert {kept[0], kept[-1]} <= set(chosen)
    assert len(chosen) <= 8
    assert chosen == sorted(set(chosen))


def test_the_demo_trains_under_a_name_that_is_free(tmp_path: Path) -> None:
    assert find_free(tmp_path / "tiny").name == "tiny"
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny-2").mkdir()
    assert find_free(tmp_path / "tiny").name == "tiny-3"


def test_the_demo_works_without_a_browser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--no-open", "--no-train", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out
