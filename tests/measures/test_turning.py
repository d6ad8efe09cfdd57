"""When curves turn: half way from plateau to end, whatever their unit and direction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.measures.turning import find_turn

STEPS = np.arange(0, 2100, 100)
RISE = np.clip((STEPS - 800) / 400, 0, 1)  # 0 to step 800, 1 from step 1,200 on
PLATEAU = (200, 800)


def test_a_rise_turns_half_way():
    turn = find_turn(STEPS, RISE, PLATEAU)
    assert (turn.step, turn.start, turn.end) == (1000, 0, 1)
    assert (turn.low, turn.high) == (None, None)


@given(st.floats(-50, 50).filter(lambda scale: abs(scale) > 1e-3), st.floats(-100, 100))
def test_neither_unit_nor_direction_matters(scale, shift):
    assert find_turn(STEPS, shift + scale * RISE, PLATEAU).step == pytest.approx(1000, abs=100)


def test_what_came_before_the_plateau_does_not_count():
    spike = np.where(STEPS < 200, 5.0, RISE)
    assert find_turn(STEPS, spike, PLATEAU).step == 1000


def test_a_curve_that_ends_where_it_stood_does_not_turn():
    noisy = np.where(STEPS % 200 == 0, 0.4, 0.6)
    assert find_turn(STEPS, noisy, PLATEAU).step is None
    assert find_turn(STEPS, np.full(len(STEPS), 0.3), PLATEAU).step is None


def test_intervals_that_overlap_hide_a_small_change_and_bound_a_large_one():
    assert find_turn(STEPS, RISE, PLATEAU, RISE - 0.6, RISE + 0.6).step is None
    turn = find_turn(STEPS, RISE, PLATEAU, RISE - 0.3, RISE + 0.3)
    assert turn.low < turn.step < turn.high


def test_steps_at_which_nothing_was_measured_are_passed_over():
    gaps = np.where(STEPS % 200 == 0, RISE, np.nan)
    assert find_turn(STEPS, gaps, PLATEAU).step == 1000
    assert find_turn(STEPS, np.full(len(STEPS), np.nan), PLATEAU).step is None


def test_a_plateau_without_a_measurement_is_read_at_the_nearest_one():
    assert find_turn(STEPS, RISE, (750, 760)).start == 0


def test_without_a_plateau_the_first_value_stands_for_it():
    assert find_turn(STEPS, RISE).start == 0
    assert find_turn(STEPS, RISE).step == 1000


def test_a_curve_that_is_there_at_its_last_step_alone_turns_there():
    steps, values = np.array([25, 200, 1000, 1800, 4250]), np.array([0.07, 0.11, 0.08, 0.45, 0.9])
    turn = find_turn(steps, values, plateau=(200, 800), low=values - 0.05, high=values + 0.04)
    assert turn.step == 4250
    assert (turn.start, turn.end) == (0.11, 0.9)
