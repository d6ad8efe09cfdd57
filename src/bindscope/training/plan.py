"""Which steps of a training run keep their weights."""

from __future__ import annotations

from bindscope.errors import BindscopeError
from bindscope.training.config import CheckpointPlan


def checkpoint_steps(plan: CheckpointPlan, total_steps: int) -> tuple[int, ...]:
    """Step 0, then ``per_octave`` steps a doubling up to ``every``, then each ``every``, the last one, and ``keep``.

    >>> checkpoint_steps(CheckpointPlan(every=100, per_octave=1, keep=(150,)), 250)
    (0, 1, 2, 4, 8, 16, 32, 64, 100, 150, 200, 250)
    """
    beyond = [step for step in plan.keep if step > total_steps]
    if beyond:
        raise BindscopeError(
            f"training.checkpoints.keep: step {beyond[0]} lies beyond the last step of the run, {total_steps}."
        )
    early = _early_steps(plan, min(plan.every, total_steps))
    regular = range(plan.every, total_steps, plan.every)
    return tuple(sorted({0, *early, *regular, *plan.keep, total_steps}))


def _early_steps(plan: CheckpointPlan, end: int) -> set[int]:
    if plan.per_octave == 0:
        return set()
    octaves = end.bit_length()
    steps = (round(2 ** (index / plan.per_octave)) for index in range(octaves * plan.per_octave + 1))
    return {step for step in steps if step < end}
