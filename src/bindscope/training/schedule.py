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
    start = fall_start(schedule, last_stage_start)
    if start is None:
        return 1.0
    done = (step - start) / max(1, last_step(schedule, total_steps, last_stage_start) - start)
    return 1.0 + (schedule.final - 1.0) * min(1.0, max(0.0, done))


def fall_start(schedule: ScheduleConfig, last_stage_start: int | None = 0) -> int | None:
    """The step from which the rate falls; None while it waits for the last stage of the data."""
    start = schedule.warmup_steps + schedule.hold_steps
    if not schedule.hold_stages:
        return start
    return None if last_stage_start is None else max(start, last_stage_start)


def last_step(schedule: ScheduleConfig, total_steps: int, last_stage_start: int | None = 0) -> int:
    """The step that training ends with: ``total_steps``, or before it the end of a fall of ``fall_steps``.

    >>> last_step(ScheduleConfig("linear", hold_stages=True, fall_steps=100), 1000, last_stage_start=500)
    600
    """
    start = fall_start(schedule, last_stage_start)
    if schedule.fall_steps is None or start is None:
        return total_steps
    return min(total_steps, start + schedule.fall_steps)
