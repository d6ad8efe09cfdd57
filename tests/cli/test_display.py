from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bindscope.cli.display import SPARKS, History, accuracy_of, draw_sparkline, watch_training
from bindscope.training.progress import Progress


def make_evaluation(accuracy: float, follows_chain: float = 0.0, follows_early: float = 0.9) -> dict:
    """An evaluation of a binding run, as far as the display reads it."""
    misleading = {"n": 300, "follows_chain": follows_chain, "follows_early_lines": follows_early}
    test = {
        "n": 1000,
        "accuracy": accuracy,
        "chance": 0.11,
        "accuracy_by_depth": [accuracy, accuracy],
        "n_by_depth": [500, 500],
        "misleading": misleading,
    }
    return {"test": test, "watched": {"depth 1": accuracy, "depth 2": accuracy}}


def make_progress(step: int, evaluation: dict | None = None) -> Progress:
    return Progress(
        step=step,
        total_steps=1000,
        loss=1.25,
        lr=5e-4,
        examples_per_second=1234.0,
        seconds_left=90.0,
        elapsed=10.0,
        evaluation=evaluation,
    )


def show(*glances: Progress, terminal: bool, past: list | None = None) -> str:
    """What a person sees of a run."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=100, color_system=None)
    with watch_training("tiny: 205k parameters", past or [], console) as observer:
        for progress in glances:
            observer(progress)
    return screen.getvalue()


def test_a_terminal_shows_loss_accuracy_by_depth_phase_speed_and_time_left() -> None:
    screen = show(make_progress(300, make_evaluation(0.57)), terminal=True)
    for word in ("tiny: 205k parameters", "step 300 of 1,000", "loss 1.2500", "depth 2", "57.0%", "phase: heuristic"):
        assert word in screen
    assert "1,234 examples/s" in screen
    assert "1 min 30 s left" in screen


def test_elsewhere_each_evaluation_is_one_plain_line(capsys: pytest.CaptureFixture[str]) -> None:
    glances = [make_progress(100, make_evaluation(0.57)), make_progress(150), make_progress(200, make_evaluation(0.6))]
    assert show(*glances, terminal=False) == ""
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tiny: 205k parameters"
    assert [line.split("  ")[0] for line in lines[1:]] == ["step 100/1,000", "step 200/1,000"]
    assert "\x1b" not in "".join(lines)


def test_nothing_is_printed_before_training_begins(capsys: pytest.CaptureFixture[str]) -> None:
    show(terminal=False)
    assert capsys.readouterr().out == ""


def test_a_resumed_run_forgets_the_evaluations_it_makes_again() -> None:
    history = History([(100, make_evaluation(0.3)), (200, make_evaluation(0.4)), (300, make_evaluation(0.5))])
    history.add(make_progress(200, make_evaluation(0.9)))
    assert [step for step, _ in history.points] == [100, 200]
    assert history.accuracies == [0.3, 0.9]


def test_a_run_without_a_test_split_is_summed_up_by_what_it_watches() -> None:
    assert accuracy_of({"0tr": {"accuracy": 1.0}, "watched": {"0tr": 1.0, "0add": 0.5}}) == 0.75


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200), st.integers(2, 60))
def test_a_sparkline_fits_its_width_and_keeps_both_ends(values: list[float], width: int) -> None:
    line = draw_sparkline(values, width)
    assert len(line) == min(len(values), width)
    for shown, value in ((line[0], values[0]), (line[-1], values[-1])):
        assert SPARKS.index(shown) == min(7, int(value * 8))
