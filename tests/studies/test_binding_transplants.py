"""Transplants and retraining on a run whose last checkpoints are constructed: everything given is the donor at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bindscope.families import family_of
from bindscope.measures.binding.plateau_transplants import MISLEADING, ask_by_depth, list_rows
from bindscope.measures.evaluation import read_answers
from bindscope.measures.retraining import steps_to_reach
from bindscope.measures.scores import score_binding
from bindscope.measures.transplanting import answer_right, measure_transplants
from bindscope.runs.directory import Run
from bindscope.studies.binding.transplants.draw import draw_cells, draw_transplants
from bindscope.studies.binding.transplants.measure import (
    Retraining,
    compute_transplants,
    find_window,
    measure_retraining,
    window_steps,
)
from bindscope.studies.binding.transplants.tell import tell_retraining, tell_transplants
from bindscope.studies.framework.results import Context, NotTestable
from bindscope.tasks.binding import constants_by_line, rows_of, to_digits
from studies.made_runs import make_run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("runs") / "made")


@pytest.fixture(scope="module")
def transplants(made: Run):
    return compute_transplants(Context(made, n=40))


def test_programs_are_asked_as_the_trajectory_scores_them(made: Run):
    """Accuracy by depth and on misleading programs is what every evaluation of a run records."""
    asked = ask_by_depth(made.config.task, np.random.default_rng(0), 200)
    model, batch = made.checkpoint(0), asked.batch
    outputs = read_answers(model, batch)
    constants = constants_by_line(rows_of(batch), int(batch.labels["lines"].max()))
    scores = score_binding(outputs, batch, constants, to_digits(batch, np.arange(outputs.shape[1])))
    right = answer_right(model, batch)
    assert [len(asked.splits[f"depth {depth}"]) for depth in (1, 2)] == scores["n_by_depth"]
    by_depth = [right[asked.splits[f"depth {depth}"]].mean() for depth in (1, 2)]
    np.testing.assert_allclose(by_depth, scores["accuracy_by_depth"], atol=1e-6)
    misleading = asked.splits[MISLEADING]
    assert len(misleading) == scores["misleading"]["n"]
    np.testing.assert_allclose(right[misleading].mean(), scores["misleading"]["follows_chain"], atol=1e-6)


def test_checkpoints_are_taken_around_the_end_of_the_plateau(made: Run, tmp_path: Path):
    window = find_window(made)
    assert (window.after, window.last) == (1450, 2000)
    assert window.early < window.before < 1400
    assert list(window_steps(made)) == sorted({window.early, window.before, window.after, window.last})
    assert family_of(made.config.task).find_jumps(made) == [(window.before, window.after)]
    early = make_run(tmp_path / "early", steps=(0, 500, 1000))
    with pytest.raises(NotTestable, match="none after it"):
        find_window(early)
    assert window_steps(early) == ()


def test_everything_carries_the_whole_way_there_and_back_and_changes_at_random_nothing_like_it(made: Run, transplants):
    whole = transplants.sel(part="everything")
    np.testing.assert_array_equal(whole.total_fraction, 1)
    np.testing.assert_array_equal(
        whole.sel(direction="reproduce").accuracy, whole.sel(direction="reproduce").donor_accuracy
    )
    assert float(whole.random_fraction.max()) < 0.5
    assert transplants.part.values.tolist() == list_rows(made.config.model, ["digits", "letters", "signs"])
    assert transplants.kind.sel(part="L0.pattern").item() == "pattern"


def test_a_sentence_names_the_part_that_carries_most_or_says_that_none_does(transplants):
    told = tell_transplants(transplants)
    assert told.startswith(("Put into step", "No part of step 1,450"))
    lifted = transplants.copy(deep=True)
    for end, value in (("", 0.8), ("_low", 0.7), ("_high", 0.9)):
        lifted[f"total_fraction{end}"].loc[{"part": "L0.QK", "direction": "reproduce"}] = value
    lifted["random_fraction"].loc[{"part": "L0.QK"}] = 0.1
    expected = "L0.QK of step 1,450 carries 80 % [70, 90] of the way to following chains, a change at random of that size at most 10 %"
    assert expected in tell_transplants(lifted)
    lifted["random_fraction"].loc[{"part": "L0.QK"}] = 0.75
    assert tell_transplants(lifted).startswith("No part of step 1,450")
    assert len(draw_transplants({"transplants": transplants}).axes) == 2


def test_the_live_question_has_the_numbers_of_the_library(made: Run):
    from bindscope.questions.opened import Opened
    from bindscope.questions.transplants import Transplant

    question = Transplant(run="made", receiver=1000, donor=2000, parts=("L0.QK + letters", "nothing"), n=40, controls=2)
    found = question.answer(Opened.of(made))
    asked = ask_by_depth(made.config.task, np.random.default_rng(0), 40)
    expected = measure_transplants(
        made.checkpoint(1000), made.checkpoint(2000), ["L0.QK + letters", "nothing"], asked, n_random=2
    )
    np.testing.assert_array_equal(found.accuracy, expected.accuracy)
    np.testing.assert_array_equal(found.random_fraction.sel(part="nothing"), 0)
    np.testing.assert_array_equal(found.total_fraction, found.fraction.sel(split=MISLEADING))


@pytest.fixture(scope="module")
def cells(made: Run):
    asked = ask_by_depth(made.config.task, np.random.default_rng(0), 60)
    return measure_retraining(made, 1000, 2000, ["everything", "nothing"], asked, Retraining(2, 4, 1))


def test_a_model_given_everything_has_left_at_once_and_one_held_never_leaves(cells):
    given = cells.sel(part="everything")
    np.testing.assert_array_equal(given.left.sel(condition="frozen"), 0)
    np.testing.assert_array_equal(given.score.sel(condition="frozen").isel(trained=slice(0, 2)), 1)
    assert np.isnan(given.left.sel(condition="held")).all()
    held = given.score.sel(condition="held")
    np.testing.assert_array_equal(held, held.isel(trained=0).broadcast_like(held))
    assert np.isnan(cells.left.sel(condition="random")).all()


def test_cells_differ_by_nothing_but_their_part_and_seeds_by_the_data(cells):
    nothing = cells.sel(part="nothing")
    for condition in cells.condition.values:
        np.testing.assert_array_equal(nothing.score.sel(condition=condition), cells.baseline_score)
    assert cells.sizes == {"part": 2, "condition": 4, "seed": 2, "trained": 5}


def test_a_sentence_tells_which_part_ends_the_plateau_sooner(cells):
    told = cells.copy(deep=True)
    told["baseline_left"][:] = [100, 110]
    told.attrs |= {"every": 10, "most_steps": 300}
    told["left"][:] = 100
    told["left"].loc[{"part": "everything", "condition": "trained"}] = [40, 50]
    assert "everything (40 and 50) ends the plateau sooner" in tell_retraining(told)
    assert "100 and 110 steps. Holding no single part" in tell_retraining(told)
    told["left"].loc[{"part": "everything", "condition": "random"}] = [40, 50]
    told["left"].loc[{"part": "nothing", "condition": "held"}] = [150, np.nan]
    assert tell_retraining(told).startswith("No part, given early and trained on, ends the plateau sooner")
    assert "Held as it was, nothing (150 and over 300) delays its end." in tell_retraining(told)
    assert draw_cells(told).axes


def test_the_plateau_is_left_where_two_evaluations_running_reach_the_target():
    scores = np.array([[0.1, 0.6, 0.2, 0.7, 0.8], [0.1, 0.6, 0.2, 0.1, 0.9], [0.9, 0.9, np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(steps_to_reach(scores, np.arange(0, 50, 10), 0.5), [30, np.nan, 0])
