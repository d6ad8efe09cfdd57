from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.training.config import ScheduleConfig
from bindscope.training.schedule import last_step, learning_rate_factor

lengths = st.tuples(st.integers(0, 50), st.integers(1, 200)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(lengths, st.floats(0, 1))
def test_the_rate_rises_through_the_warmup_and_never_after(length, final):
    warmup, total = length
    schedule = ScheduleConfig("linear", warmup_steps=warmup, final=final)
    factors = [learning_rate_factor(schedule, step, total) for step in range(total + 1)]
    assert all(0 < factor <= 1 for factor in factors[:total])
    assert factors[:warmup] == sorted(factors[:warmup])
    assert factors[warmup:] == sorted(factors[warmup:], reverse=True)
    assert factors[max(0, warmup - 1)] == 1
    assert factors[total] == pytest.approx(final)


@given(lengths, st.floats(0.1, 0.9))
def test_linear_decay_falls_by_equal_parts(length, final):
    warmup, total = length
    schedule = ScheduleConfig("linear", warmup_steps=warmup, final=final)
    falls = {
        round(learning_rate_factor(schedule, s, total) - learning_rate_factor(schedule, s + 1, total), 9)
        for s in range(warmup, total)
    }
    assert falls == {round((1 - final) / (total - warmup), 9)}


@given(lengths)
def test_a_constant_rate_stays_after_the_warmup(length):
    warmup, total = length
    schedule = ScheduleConfig("constant", warmup_steps=warmup)
    assert {learning_rate_factor(schedule, step, total) for step in range(warmup, total)} == {1.0}


def test_a_rate_that_waits_for_the_last_stage_falls_from_there_to_the_end():
    schedule = ScheduleConfig("linear", warmup_steps=2, final=0.5, hold_stages=True)
    assert {learning_rate_factor(schedule, step, 20, last_stage_start=None) for step in range(2, 20)} == {1.0}
    factors = [learning_rate_factor(schedule, step, 20, last_stage_start=10) for step in range(21)]
    assert factors[2:11] == [1.0] * 9
    assert factors[15] == pytest.approx(0.75)
    assert factors[20] == pytest.approx(0.5)


def test_a_fall_of_so_many_steps_ends_training_wherever_it_begins():
    schedule = ScheduleConfig("linear", warmup_steps=2, final=0.5, hold_stages=True, fall_steps=8)
    assert last_step(schedule, 100, last_stage_start=None) == 100
    assert last_step(schedule, 100, last_stage_start=10) == 18
    assert last_step(schedule, 15, last_stage_start=10) == 15
    factors = [learning_rate_factor(schedule, step, 100, last_stage_start=10) for step in (10, 14, 18)]
    assert factors == pytest.approx([1.0, 0.75, 0.5])
    assert last_step(ScheduleConfig("linear", warmup_steps=2, hold_steps=3, fall_steps=4), 100) == 9


@pytest.mark.parametrize("setting", [{"warmup_steps": -1}, {"final": 1.5}, {"kind": "linear", "fall_steps": 0}])
def test_an_impossible_schedule_is_refused(setting):
    with pytest.raises(BindscopeError, match=list(setting)[-1]):
        ScheduleConfig(**setting)


def test_a_constant_rate_has_no_fall():
    with pytest.raises(BindscopeError, match="fall_steps"):
        ScheduleConfig("constant", fall_steps=10)
