"""AA11's dataset at a small modulus, its judge on datasets we write, and its command."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.one_step import SHARP_BETA, chosen, fit_gap, scale_limit, step_dataset
from bindscope.studies.assign_add.one_step.judge import AA11, judge_one_step
from bindscope.studies.assign_add.one_step.measure import RESULTS
from bindscope.studies.plots.style import save_figure
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.theory.one_step import Setting, measure_step
from cli.answers import answer, refusal


@cache
def measured() -> xr.Dataset:
    return step_dataset(AssignAddTask(23, 6), n=60)


def test_the_dataset_holds_the_theorys_numbers() -> None:
    dataset = measured()
    step = measure_step(Setting(13, 6, 4.0))
    for term, value in step.per_scale.items():
        assert dataset.measured.sel(term=term, modulus=13, beta=4.0) == pytest.approx(value)
        assert dataset.predicted.sel(term=term, beta=4.0) == pytest.approx(step.predicted_per_scale[term])
    memory = dataset.gradient.sel(key=[f"Φ{name}" for name in "abcdef"], query=[f"Φ{name}" for name in "abcdef"])
    here = measure_step(Setting(23, 6, 3.0))
    assert np.allclose(memory.values, here.memory / here.predicted["associative"])
    assert dataset.block_norm.sel(key_kind="Φ variable", query_kind="Φ variable") == pytest.approx(
        float(np.sqrt((memory**2).sum()))
    )


def test_the_gap_is_four_times_epsilon_and_one_over_p() -> None:
    a, b = fit_gap(measured())
    assert a == pytest.approx(4, abs=0.3)
    assert b == pytest.approx(1, abs=0.1)


def test_the_slot_leaves_its_prediction_at_a_smaller_scale_than_the_memory() -> None:
    dataset = measured()
    slot, memory = (scale_limit(dataset, term) for term in ("slot", "associative"))
    assert 0.01 < slot < memory < 100
    found = measure_step(Setting(23, 6, 3.0, slot)).per_scale["slot"]
    assert found / measure_step(Setting(23, 6, 3.0)).per_scale["slot"] == pytest.approx(1.1, abs=0.01)
    assert np.isnan(scale_limit(dataset.isel(scale=slice(0, 3)), "slot"))


def test_the_step_size_is_chosen_on_seen_sums_alone() -> None:
    dataset = measured().copy(deep=True)
    dataset.accuracy.loc[{"direction": "whole gradient", "split": "2 unseen", "step_size": 6.0}] = 1.0
    answers = chosen(dataset)
    seen = dataset.accuracy.sel(split="1 seen", direction="whole gradient")
    assert answers.step_size[0] == dataset.step_size[int(seen.values.argmax())] < 6
    assert answers.after.sel(direction="whole gradient", split="1 seen") == pytest.approx(float(seen.max()))
    assert (answers.before == dataset.accuracy.isel(direction=1, step_size=0)).all()


def changed(**values: float) -> dict[str, xr.Dataset]:
    """The measured dataset with other numbers in it."""
    dataset = measured().copy(deep=True)
    dataset.attrs["n"] = 2400  # as many sums as the study draws
    for name, value in values.items():
        if name in ("after", "without"):
            direction = {"after": ["whole gradient"], "without": ["without memory", "shuffled binding"]}[name]
            dataset.accuracy.loc[{"direction": direction, "split": "2 unseen"}] = value
            dataset.accuracy.loc[{"split": "2 unseen", "step_size": 0.0}] = 0.3
        elif name == "gap":
            dataset.measured.loc[{"modulus": 31}] *= value
        elif name in ("named", "named_elsewhere"):
            focus = {"named": "literal", "named_elsewhere": "operator"}[name]
            dataset.sharp_fraction.loc[{"focus": focus, "part": "rest"}] = 1 - value
        elif name == "memory":
            dataset.coefficient.loc[{"term": "associative"}] *= value
        else:
            dataset[name] = dataset[name] * 0 + value
    return {"one_step": dataset}


def test_a_step_that_composes_as_predicted_replicates() -> None:
    finding = judge_one_step(changed(after=0.8, without=0.3))
    assert finding.verdict == "replicates", finding.reason
    assert len(finding.quantities) >= 6
    assert len(finding.control) == 5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"memory": 0.5}, "too far"),
        ({"off_diagonal": 1e-3}, "too far"),
        ({"gap": 0.9}, "does not shrink"),
        ({"after": 0.35}, "too little"),
        ({"without": 0.6}, "still gain"),
        ({"shuffled_margin": 1e-3}, "without the binding"),
        ({"operator_coefficient": 1e-2}, "without attention on the literal"),
        ({"named": 0.4}, "they do not dominate"),
        ({"named_elsewhere": 0.6}, "the terms hold 60 % of the squared norm, too much"),
    ],
)
def test_each_condition_and_each_control_can_fail(change: dict[str, float], words: str) -> None:
    finding = judge_one_step(changed(**({"after": 0.8, "without": 0.3} | change)))
    assert finding.verdict == "differs"
    assert words in finding.reason


@pytest.mark.parametrize("change", [{"after": 0.51}, {"without": 0.34}])
def test_gains_whose_intervals_span_a_bound_are_inconclusive(change: dict[str, float]) -> None:
    finding = judge_one_step(changed(**({"after": 0.8, "without": 0.3} | change)))
    assert finding.verdict == "inconclusive", finding.reason


def test_the_terms_hold_what_the_theory_says_at_a_sharp_start() -> None:
    rest = measure_step(Setting(23, 6, SHARP_BETA)).norm_fractions["rest"]
    assert float(measured().sharp_fraction.sel(focus="literal", part="rest")) == pytest.approx(rest)
    np.testing.assert_allclose(measured().sharp_fraction.sum("part"), 1)


def test_other_operators_are_not_testable() -> None:
    with pytest.raises(BindscopeError, match="about sums"):
        step_dataset(AssignAddTask(7, 4, operator="*"))


def test_the_figure_is_drawn_and_the_result_is_small(tmp_path: Path) -> None:
    assert save_figure(AA11.draw({"one_step": measured()}), tmp_path / "step.svg").stat().st_size > 10_000
    assert AA11.results == tuple(result.name for result in RESULTS)
    assert measured().nbytes < 100_000


def test_the_command_prints_and_writes_what_the_library_measures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("one-step", "--modulus", "11", "--variables", "4", "--n", "20")
    found = json.loads(answer(capsys, *options, "--json", "--out", str(tmp_path / "step.nc")))
    step = measure_step(Setting(11, 4, 3.0))
    assert {row["term"]: row["measured"] for row in found["terms"]} == pytest.approx(step.per_scale)
    assert xr.load_dataset(tmp_path / "step.nc", engine="h5netcdf").attrs["modulus"] == 11
    printed = answer(capsys, *options, "--beta", "4", "--out", str(tmp_path / "step.png"))
    assert "associative" in printed
    assert "2 unseen" in printed
    assert (tmp_path / "step.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--beta", "99"), "beta"),
        (("--scale", "0"), "scale"),
        (("--n", "0"), "n:"),
        (("--modulus", "100000"), "modulus: must be at most"),
        (("--variables", "2"), "n_variables"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refusal(capsys, "one-step", *arguments)
