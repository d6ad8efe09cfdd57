"""The kept checkpoints around each spike of a run, between which parts are transplanted.

>>> [(window.before, window.after) for window in find_windows(run)]
[(5301, 5401), (14501, 16001)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.studies.assign_add.learning import spikes_of
from bindscope.studies.trajectory import trajectory_dataset

if TYPE_CHECKING:
    from bindscope.measures.arithmetic.spikes import Spike
    from bindscope.runs.directory import Run

FURTHEST = 3  # a window may be this many times as long as its spike, and no less than FEWEST steps
FEWEST = 1500


@dataclass(frozen=True)
class Window:
    """One spike and three kept steps: the last before it, the first after it, and one earlier as a control."""

    spike: Spike
    before: int
    after: int
    earlier: int | None  # as far before ``before`` as that is before ``after``, or the nearest to it


def find_windows(run: Run) -> list[Window]:
    """The spikes of a run that have checkpoints close by on both sides, in order of time."""
    if not any("watched" in record for record in run.metrics):
        return []
    found = []
    for spike in spikes_of(trajectory_dataset(run.metrics)):
        before = max((step for step in run.steps if step <= spike.before_step), default=None)
        after = min((step for step in run.steps if step >= spike.after_step), default=None)
        if before is None or after is None:
            continue
        if after - before <= max(FURTHEST * (spike.after_step - spike.before_step), FEWEST):
            found.append(Window(spike, before, after, _earlier(run, before, after)))
    return found


def window_steps(run: Run) -> tuple[int, ...]:
    """The checkpoints that transplants read."""
    windows = find_windows(run)
    steps = {step for window in windows for step in (window.before, window.after, window.earlier) if step is not None}
    return tuple(sorted(steps))


def _earlier(run: Run, before: int, after: int) -> int | None:
    wanted = 2 * before - after
    return min((step for step in run.steps if step < before), key=lambda step: (abs(step - wanted), step), default=None)
