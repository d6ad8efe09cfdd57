from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.cli.demo import find_free
from bindscope.cli.main import run
from bindscope.measures.binding.phases import Phase
from bindscope.runs import locate
from bindscope.runs.directory import Run
from bindscope.runs.thin import thin_run
from bindscope.studies.plots.report import choose_steps


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


@pytest.mark.parametrize("once", [["--once"], []])
def test_the_demo_refuses_a_bad_number_of_steps_before_it_writes_or_serves(
    once: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["demo", *once, "--no-open", "--steps", "-3", "--out", str(tmp_path)]) == 2
    assert "training.steps: must be at least 1, got -3." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_demo_works_without_a_browser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--once", "--no-open", "--no-train", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out


@pytest.fixture
def shipped(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that belongs to the package, seen from an empty directory."""
    monkeypatch.setattr(locate, "SHIPPED_DIRECTORY", tmp_path / "package")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return thin_run(Run.open(trained), tmp_path / "package" / "small", steps=(0, 8, "last")).path


def test_a_shipped_run_is_used_by_name_and_never_written_to(shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in shipped.rglob("*")}
    for arguments in (
        ["runs"],
        ["evaluate", "small", "--n", "50"],
        ["predict", "small", "a=5;b=a;#b:", "--step", "all"],
        ["trajectory", "small", "--html"],
    ):
        assert run(arguments) == 0, capsys.readouterr().err
    assert run(["resume", "small"]) == 2
    assert "comes with Bindscope" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in shipped.rglob("*")} == before
    assert {path.name for path in Path().iterdir()} == {"small-trajectory.svg", "small-trajectory.html"}


def test_the_demo_reports_the_shipped_run_then_a_live_one(shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--once", "--no-open", "--steps", "2"]) == 0
    shown = capsys.readouterr().out
    for page in ("runs/reports/shipped.html", "runs/reports/binding-tiny.html"):
        assert page in shown
        text = Path(page).read_text(encoding="utf-8")
        assert "http://" not in text.replace("http://www.w3.org", "")
        assert "<script" not in text
