"""Spikes and phases of simulated runs lie where they were put, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.spikes import (
    SUM_PHASES,
    SpikeCriterion,
    SumPhaseCriterion,
    detect_sum_phases,
    find_spikes,
)
from bindscope.tasks.assign_add import SPLIT_NAMES
from measures.simulated_sums import DENSE, UNEVEN, N, simulate_sums


@pytest.mark.parametrize("steps", [DENSE, UNEVEN], ids=["each 100", "uneven"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_spikes_are_found_where_they_were_put(steps, seed):
    spikes = find_spikes(steps, simulate_sums(steps, seed), SPLIT_NAMES, N)
    assert [spike.number for spike in spikes] == [1, 2]
    first, second = spikes
    assert first.before_step <= 5350 <= first.after_step <= first.before_step + 100
    assert 14400 <= second.before_step < second.after_step <= 16100
    assert {"1tr", "1add", "2tr", "2add"} <= set(first.splits)
    assert set(second.splits) == {"1var", "2var1", "2var2"}
    assert second.size > 0.25


@pytest.mark.parametrize("steps", [DENSE, UNEVEN], ids=["each 100", "uneven"])
def test_the_three_phases_follow_each_other(steps):
    phases = detect_sum_phases(steps, simulate_sums(steps), SPLIT_NAMES)
    assert [phase.name for phase in phases] == list(SUM_PHASES)
    addition, assignment, refinement = phases
    assert 200 <= addition.first_step <= 1001
    assert addition.last_step <= 5350 <= assignment.first_step
    assert 14500 <= assignment.last_step < refinement.first_step <= 16100
    assert addition.accuracy < assignment.accuracy < refinement.accuracy


def test_learning_to_add_lifts_all_splits_and_is_no_spike():
    steps = np.arange(0, 5000, 100)
    accuracy = simulate_sums(steps)
    assert accuracy[:10, 2].max() - accuracy[0, 2] > 0.25
    assert find_spikes(steps, accuracy, SPLIT_NAMES, N) == []


def test_a_slow_rise_is_no_spike():
    steps = np.arange(0, 20001, 500)
    accuracy = np.ones((len(steps), 9))
    accuracy[:, 2:] = np.linspace(0.1, 1, len(steps))[:, None]
    assert find_spikes(steps, accuracy, SPLIT_NAMES, N) == []
    assert find_spikes(steps, accuracy, SPLIT_NAMES, N, SpikeCriterion(window=8000)) == []  # a climb
    assert len(find_spikes(steps, accuracy, SPLIT_NAMES, N, SpikeCriterion(window=8000, pace=0))) >= 1


def test_a_rise_between_evaluations_too_far_apart_is_no_spike():
    accuracy = np.ones((2, 9))
    accuracy[0, 2:] = 0.1
    assert find_spikes([0, 1501], accuracy, SPLIT_NAMES, N) == []
    assert len(find_spikes([0, 1500], accuracy, SPLIT_NAMES, N)) == 1


def test_noise_a_flash_and_a_fall_are_no_spikes():
    steps = np.arange(0, 6000, 100)
    rng = np.random.default_rng(0)
    noisy = np.ones((len(steps), 9))
    noisy[:, 2:] = rng.binomial(N, 0.5, (len(steps), 7)) / N
    assert find_spikes(steps, noisy, SPLIT_NAMES, N) == []
    flash = noisy.copy()
    flash[20, 4] = 1.0
    assert find_spikes(steps, flash, SPLIT_NAMES, N) == []
    fall = noisy.copy()
    fall[30:, 2:] = 0.1
    assert find_spikes(steps, fall, SPLIT_NAMES, N) == []


def test_few_examples_need_a_larger_rise():
    steps, accuracy = np.arange(0, 2000, 100), np.ones((20, 9))
    accuracy[:10, 4], accuracy[10:, 4] = 0.35, 0.65
    assert len(find_spikes(steps, accuracy, SPLIT_NAMES, 2000)) == 1
    assert find_spikes(steps, accuracy, SPLIT_NAMES, 20) == []


def test_what_was_not_measured_is_left_out():
    accuracy = simulate_sums(DENSE)
    accuracy[7] = np.nan
    assert len(find_spikes(DENSE, accuracy, SPLIT_NAMES, N)) == 2
    assert len(detect_sum_phases(DENSE, accuracy, SPLIT_NAMES)) == 3


def test_other_splits_have_no_phases():
    assert detect_sum_phases([0, 100], np.ones((2, 1)), ["test"]) == []


def test_an_early_run_has_only_its_first_phase():
    steps = np.arange(0, 4001, 100)
    assert [phase.name for phase in detect_sum_phases(steps, simulate_sums(steps), SPLIT_NAMES)] == ["addition"]


def test_words_hold_the_numbers_of_the_criterion():
    assert "1,500" in SpikeCriterion().describe()
    assert set(SumPhaseCriterion().describe()) == {*SUM_PHASES, "any"}


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: SpikeCriterion(rise=2), "rise"),
        (lambda: SpikeCriterion(window=0), "window"),
        (lambda: SumPhaseCriterion(persist=0), "persist"),
        (lambda: find_spikes([1, 0], np.ones((2, 9)), SPLIT_NAMES), "increase"),
        (lambda: find_spikes([0, 1], np.ones((3, 9)), SPLIT_NAMES), "as many"),
    ],
)
def test_what_makes_no_sense_is_refused(make, word):
    with pytest.raises(BindscopeError, match=word):
        make()
