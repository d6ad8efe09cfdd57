"""The kept checkpoints around the spikes of a run, between which parts are transplanted.

Of many spikes those two count that the paper tells of; where a run lacks one, the first, or the largest after it.

>>> [(window.before, window.after) for window in find_windows(run)]
[(5301, 5401), (14501, 16001)]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.studies.assign_add.learning.phases import published_spikes, spikes_of
from bindscope.studies.framework.trajectory import trajectory_dataset

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
    """Two spikes at most that have checkpoints close by on both sides, in order of time."""
    if not any("watched" in record for record in run.metrics):
        return []
    found = []
    for spike in _choose(spikes_of(trajectory_dataset(run.metrics, family="assign_add"))):
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


def _choose(spikes: list[Spike]) -> list[Spike]:
    first, second = published_spikes(spikes)
    first = first or next(iter(spikes), None)
    later = [spike for spike in spikes if first is not None and spike.number > first.number]
    second = second or max(later, key=lambda spike: spike.size, default=None)
    return [spike for spike in (first, second) if spike is not None]


def _earlier(run: Run, before: int, after: int) -> int | None:
    wanted = 2 * before - after
    return min((step for step in run.steps if step < before), key=lambda step: (abs(step - wanted), step), default=None)
