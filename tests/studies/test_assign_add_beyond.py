"""Experiments beyond the paper: what they say and draw of runs whose outcome is known, and what they would train."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from bindscope.measures.phases import find_transition
from bindscope.studies.assign_add.experiments.conclude import conclude_options, kind_learned
from bindscope.studies.assign_add.experiments.draw import draw_options
from bindscope.tasks.assign_add import SPLIT_NAMES

STEPS = np.arange(0, 1001, 100)


def made_dataset(learned: dict[tuple[str, int], dict[str, int]]) -> xr.Dataset:
    """Runs whose splits jump from 20 % to full marks at given steps; a split that is not named stays at 20 %."""
    names, seeds = (list(dict.fromkeys(key[position] for key in learned)) for position in (0, 1))
    accuracy = np.full((len(names), len(seeds), len(STEPS), 9), np.nan)
    last_step = np.full((len(names), len(seeds)), np.nan)
    for (name, seed), jumps in learned.items():
        for at, split in enumerate(SPLIT_NAMES):
            curve = np.where(jumps.get(split, 10**9) <= STEPS, 1.0, 0.2)
            accuracy[names.index(name), seeds.index(seed), :, at] = curve
        last_step[names.index(name), seeds.index(seed)] = STEPS[-1]
    transitions = np.apply_along_axis(lambda curve: float(find_transition(STEPS, curve) or np.nan), 2, accuracy)
    return xr.Dataset(
        {
            "split_accuracy": (("variant", "seed", "step", "split"), accuracy),
            "last_accuracy": (("variant", "seed", "split"), accuracy[:, :, -1]),
            "learned": (("variant", "seed", "split"), transitions),
            "last_step": (("variant", "seed"), last_step),
        },
        {"variant": names, "seed": seeds, "step": STEPS, "split": list(SPLIT_NAMES)},
    )


ALL = {split: 100 * (index + 1) for index, split in enumerate(SPLIT_NAMES)}


@pytest.fixture
def dataset() -> xr.Dataset:
    no_positions = {split: step for split, step in ALL.items() if split not in ("1var", "2var2")}
    return made_dataset({("small", 0): ALL, ("small", 1): no_positions, ("large", 0): {}})


def test_a_kind_of_sum_is_learned_when_the_last_of_its_splits_is(dataset):
    run = dataset.sel(variant="small", seed=0)
    assert kind_learned(run, "as in training") == ALL["2tr"]
    assert kind_learned(run, "with held-out pairs") == ALL["2add"]
    assert kind_learned(run, "in new positions") == ALL["2var2"]
    assert np.isnan(kind_learned(dataset.sel(variant="small", seed=1), "in new positions"))


def test_the_conclusion_counts_whole_runs_and_names_what_each_missed(dataset):
    assert conclude_options(dataset) == (
        "All nine splits reach 90 % within 1,000 steps in 1 of 3 runs. "
        "small: seed 0 learns sums as in training (step 600), with held-out pairs (step 700), in new positions (step 900); "
        "seed 1 learns sums as in training (step 600), with held-out pairs (step 700), not in new positions (1var ends at "
        "20 %). "
        "large: seed 0 learns none of the kinds: as in training (0tr ends at 20 %), with held-out pairs (0add ends at "
        "20 %), in new positions (1var ends at 20 %)."
    )


def test_the_figure_has_a_row_for_each_variant_and_a_cross_for_each_kind_that_a_run_missed(dataset):
    learned, last, lowest = draw_options(dataset).axes
    for axes in (learned, last):
        assert [label.get_text() for label in axes.get_yticklabels()] == ["small", "large"]
    crosses = [line for line in learned.lines if line.get_marker() == "x"]
    assert len(crosses) == 1 + 3
    assert {text.get_text() for text in last.texts} >= {"100", "20"}
    curves = [line for line in lowest.lines if len(line.get_xdata())]
    assert sorted(float(line.get_ydata()[-1]) for line in curves) == pytest.approx([0.2, 0.2, 1.0])
