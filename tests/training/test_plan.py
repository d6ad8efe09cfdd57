from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.training.config import CheckpointPlan
from bindscope.training.plan import checkpoint_steps

plans = st.builds(CheckpointPlan, every=st.integers(1, 300), per_octave=st.integers(0, 8))


@given(plans, st.integers(1, 2000))
def test_first_last_and_every_multiple_are_kept(plan, total):
    steps = checkpoint_steps(plan, total)
    assert list(steps) == sorted(set(steps))
    assert steps[0] == 0
    assert steps[-1] == total
    assert set(range(0, total, plan.every)) <= set(steps)


@given(plans, st.integers(1, 2000))
def test_beyond_every_nothing_else_is_kept(plan, total):
    late = [step for step in checkpoint_steps(plan, total) if plan.every < step < total]
    assert all(step % plan.every == 0 for step in late)


@given(st.integers(2, 8), st.integers(64, 2000))
def test_early_steps_are_dense_on_a_log_scale(per_octave, total):
    early = [step for step in checkpoint_steps(CheckpointPlan(every=total, per_octave=per_octave), total) if step]
    for here, after in pairwise(early):
        assert after <= max(here + 1, round(here * 2 ** (1 / per_octave)) + 1)


def test_named_steps_are_kept_and_a_step_beyond_the_end_is_refused():
    plan = CheckpointPlan(every=50, per_octave=0, keep=(7, 93))
    assert checkpoint_steps(plan, 120) == (0, 7, 50, 93, 100, 120)
    with pytest.raises(BindscopeError, match="step 93 lies beyond the last step of the run, 90"):
        checkpoint_steps(plan, 90)
