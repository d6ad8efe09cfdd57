"""The result of score terms on a run whose weights are written, its command, and what AA10 says of it; every sum of a split."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.score_terms import token_matrices
from bindscope.measures.arithmetic.spikes import Spike
from bindscope.runs.directory import Run
from bindscope.studies.assign_add.scores.describe import describe_scores_around, find_riser, steps_around
from bindscope.studies.assign_add.scores.draw_tokens import group_tokens
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import find_study
from bindscope.tasks.assign_add import SPLIT_NAMES
from cli.answers import answer, refusal
from measures.constructed_adder import TASK, construct_adder
from studies.made_sums import make_sums

STUDY = find_study("assign_add")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_sums(tmp_path_factory.mktemp("sums") / "made", steps=(0, 100))


@pytest.fixture(scope="module")
def scores(run: Run) -> xr.Dataset:
    dataset = Library(run, STUDY.results, run.path / "results", n=5).fill("score_terms").dataset
    assert dataset is not None
    return dataset


def test_the_adder_matches_what_layer_one_brought_for_every_variable(scores: xr.Dataset):
    last = scores.term.sel(step=100)
    np.testing.assert_allclose(last.sel(query_part="layer 1", key_part="layer 1"), 40, rtol=1e-3)
    np.testing.assert_allclose(last.sum(("query_part", "key_part")), 80, rtol=1e-3)
    assert np.abs(scores.term.sel(step=0, query_part="layer 1", key_part="layer 1")).max() < 5
    expected = token_matrices(SumForms.of(construct_adder(), TASK), TASK)
    np.testing.assert_allclose(scores.token_qk2, expected.token_qk2, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(scores.token_ov, expected.token_ov, rtol=1e-3, atol=1e-6)


def test_the_score_around_a_spike_is_told(scores: xr.Dataset):
    spike = xr.Dataset({"focus_variable": "b", "before_step": 0, "after_step": 100}, {"spike": 2})
    text = describe_scores_around(spike, scores)
    assert "the score of the value of b in layer 2" in text
    assert text.count("to 80.0 as") == 2
    assert text.count("to 40.0 of it") == 2


def test_the_command_shows_the_terms_of_one_variable(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text = answer(capsys, "progress", str(run.path), "--n", "5", "--scores", "b", "--out", str(tmp_path / "b.svg"))
    assert "terms at step 0 → 100" in text
    assert "→ 40.00" in text
    assert (tmp_path / "b.svg").stat().st_size > 10_000
    assert "there is no variable 'z'" in refusal(capsys, "progress", str(run.path), "--n", "5", "--scores", "z")


def test_the_figure_shows_the_variable_that_rises_across_the_last_spike(scores: xr.Dataset):
    steps = (0, 100)
    assert steps_around(scores, []) == steps
    assert steps_around(scores, [Spike(1, 20, 40, ("1tr",), 0.5)]) == steps
    one = scores.copy(deep=True)
    one.term.loc[{"step": 100, "variable": "c", "operand": "second"}] += 5
    assert find_riser(one, steps) == "c"
    drawn = STUDY.find_figure("score-terms").draw({"score_terms": one})
    assert drawn.get_suptitle().startswith("The score that = gives the value of c")
    curves = next(axes for axes in drawn.axes if axes.get_ylabel() == "term, c as second operand")
    assert len(curves.lines) == 9
    ends = sorted(float(line.get_ydata()[-1]) for line in curves.lines)
    np.testing.assert_allclose(ends, np.sort(one.term.sel(step=100, variable="c", operand="second").values.ravel()))


def test_token_maps_draw_every_entry_and_group_the_tokens(scores: xr.Dataset):
    drawn = STUDY.find_figure("token-maps").draw({"score_terms": scores})
    drawn_cells = [mesh.get_array() for axes in drawn.axes for mesh in axes.collections if mesh.get_array() is not None]
    for expected in (*scores.token_ov.values, scores.token_qk2.values):
        assert any(cells.shape == expected.shape and np.array_equal(cells, expected) for cells in drawn_cells)
    assert group_tokens(["0", "1", "+", "=", "PAD", "a", "OV1 0", "OV1 a"]) == {
        "numbers": (0, 1), "+ = PAD": (2, 4), "variables": (5, 5), "copies of numbers": (6, 6), "copies of variables": (7, 7),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["score-terms", "token-maps"])
def test_figures_beside_the_claims_are_drawn_by_name(
    name: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert "figure   " in answer(capsys, "figure", str(run.path), name, "--n", "5", "--out", str(tmp_path / "one.svg"))
    assert (tmp_path / "one.svg").stat().st_size > 10_000


def test_every_sum_of_each_split_is_asked_once(run: Run, capsys: pytest.CaptureFixture[str]):
    found = json.loads(answer(capsys, "evaluate", str(run.path), "--every", "--json"))
    for split in SPLIT_NAMES:
        assert found[split]["n"] == TASK.count_split(split)
        assert found[split]["accuracy"] == 1
    assert "has no splits that can be listed" in refusal(capsys, "evaluate", "binding-laptop", "--every")
