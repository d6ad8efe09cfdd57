"""The learning rate as a pure function of the step."""

from __future__ import annotations

from bindscope.training.config import ScheduleConfig


def learning_rate_factor(
    schedule: ScheduleConfig, step: int, total_steps: int, last_stage_start: int | None = 0
) -> float:
    """What the base rate is multiplied by in the update that follows ``step`` finished ones.

    The warm-up rises in equal parts and reaches 1 with its last update; the linear decay starts from there and would
    reach ``schedule.final`` at ``total_steps``, so no update is spent at a rate of zero. ``last_stage_start``: the step
    at which the last stage of staged data began, None before it.

    >>> [learning_rate_factor(ScheduleConfig("linear", warmup_steps=2), step, 6) for step in range(6)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    if step < schedule.warmup_steps:
        return (step + 1) / schedule.warmup_steps
    if schedule.kind == "constant":
        return 1.0
    falling = schedule.warmup_steps + schedule.hold_steps  # the step from which it falls
    if schedule.hold_stages:
        falling = max(falling, step if last_stage_start is None else last_stage_start)
    done = (step - falling) / max(1, total_steps - falling)
    return 1.0 + (schedule.final - 1.0) * min(1.0, max(0.0, done))
