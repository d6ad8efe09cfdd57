"""Predictions kept at every checkpoint equal asking the model, and grow with the run without asking twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import bindscope.studies.binding.behaviour.measure as behaviour
from bindscope.errors import BindscopeError
from bindscope.intervals import wilson_interval
from bindscope.measures.binding.importance import explain_behaviour
from bindscope.measures.binding.predictions import predict_answers
from bindscope.measures.evaluation import read_answers
from bindscope.runs.directory import Run
from bindscope.studies.binding.behaviour.measure import LEVEL, accuracy_by_step, explain_step, predictions_at
from bindscope.studies.binding.study import STUDY
from bindscope.studies.framework.results import Library
from bindscope.tasks.binding import ask_programs
from studies.made_runs import make_run

N = 40


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("made") / "run")


def fill(run: Run, folder: Path, **settings) -> xr.Dataset:
    dataset = Library(run, STUDY.results, folder, n=N, **settings).fill("predictions").dataset
    assert dataset is not None
    return dataset


@pytest.fixture(scope="module")
def dataset(run: Run, tmp_path_factory: pytest.TempPathFactory) -> xr.Dataset:
    return fill(run, tmp_path_factory.mktemp("kept"))


def test_every_checkpoint_is_asked_what_the_command_asks(run: Run, dataset: xr.Dataset) -> None:
    batch = run.config.task.sample_evaluation(np.random.default_rng(0), N)["test"]
    assert tuple(dataset.step.values) == run.steps
    for step in run.steps:
        naive, kept = predict_answers(run.checkpoint(step), batch), predictions_at(dataset, step)
        np.testing.assert_array_equal(kept.predicted, naive.predicted)
        np.testing.assert_array_equal(kept.answers, naive.answers)
        np.testing.assert_array_equal(kept.sources, naive.sources)
        assert kept.rules.keys() == naive.rules.keys()
        assert kept.attributes.keys() == naive.attributes.keys()
        for name, values in {**naive.rules, **naive.attributes}.items():
            np.testing.assert_array_equal({**kept.rules, **kept.attributes}[name], values)


def test_a_program_asked_by_its_text_gets_the_kept_probabilities(run: Run, dataset: xr.Dataset) -> None:
    programs = [run.config.task.parse(text) for text in dataset.text.values]
    assert [program.answer for program in programs] == dataset.answer.values.tolist()
    for step in run.steps:
        outputs = read_answers(run.checkpoint(step), ask_programs(programs)).astype(float)
        fractions = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
        rows = np.arange(N)
        right, line_1 = fractions[rows, dataset.answer.values], fractions[rows, dataset.rule_line_1.values]
        kept = dataset.sel(step=step)
        np.testing.assert_allclose(kept.probability, right, atol=LEVEL / 2 + 1e-6)
        np.testing.assert_allclose(kept.line_1_probability, line_1, atol=LEVEL / 2 + 1e-6)


def test_what_is_read_back_is_what_was_measured(run: Run, tmp_path: Path) -> None:
    made, read = fill(run, tmp_path), fill(run, tmp_path)
    xr.testing.assert_allclose(made.drop_vars("checkpoint"), read.drop_vars("checkpoint"), atol=1e-6)
    assert (tmp_path / "predictions.nc").stat().st_size < 300_000


def test_a_run_that_grows_is_asked_only_at_new_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    measure = behaviour._measure
    monkeypatch.setattr(behaviour, "_measure", lambda *given: asked.append(1) or measure(*given))
    short = make_run(tmp_path / "short", steps=(0, 1450))
    first = fill(short, tmp_path / "kept")
    short.write_checkpoint(2000, short.checkpoint(1450).state_dict())
    second = fill(Run.open(tmp_path / "short"), tmp_path / "kept")
    assert len(asked) == 3
    xr.testing.assert_allclose(second.sel(step=[0, 1450]).drop_vars("checkpoint"), first.drop_vars("checkpoint"))
    fill(Run.open(tmp_path / "short"), tmp_path / "kept", seed=1)  # other programs: nothing of the old can be used
    assert len(asked) == 6


def test_accuracy_by_step_counts_what_is_kept_with_wilson_intervals(run: Run, dataset: xr.Dataset) -> None:
    table = accuracy_by_step(dataset)
    for step in run.steps:
        hits = int(predictions_at(dataset, step).right.sum())
        found = [float(table[f"accuracy{end}"].sel(step=step)) for end in ("", "_low", "_high")]
        assert found == pytest.approx([hits / N, *map(float, wilson_interval(hits, N))])
    assert float(table.accuracy.sel(step=2000)) == 1.0


def test_importance_is_that_of_the_command(run: Run, tmp_path: Path) -> None:
    full = Library(run, STUDY.results, tmp_path, n=120).fill("predictions").dataset
    assert full is not None
    explained = explain_step(run, full, 0)
    rng = np.random.default_rng(0)
    batch = run.config.task.sample_evaluation(rng, 120)["test"]
    naive = explain_behaviour(predict_answers(run.checkpoint(0), batch), "line_1", rng)
    xr.testing.assert_allclose(explained.importance.sel(target="line_1", drop=True), naive.importance)
    assert str(explained.note.sel(target="line_1").values) == naive.attrs["note"]


def test_a_step_that_was_not_measured_is_refused(dataset: xr.Dataset) -> None:
    with pytest.raises(BindscopeError, match="step 7 is not among the 5"):
        predictions_at(dataset, 7)


def test_a_run_without_checkpoints_says_so(tmp_path: Path) -> None:
    empty = make_run(tmp_path / "empty", steps=())
    filled = Library(empty, STUDY.results, tmp_path / "kept").fill("predictions")
    assert filled.dataset is None
    assert "no checkpoint" in filled.reason
