"""The spikes of a run, beside its curves and as a table of what jumped, and the saved checkpoints around them, between which
parts are transplanted.

Of many spikes those two count that the paper tells of; where a run lacks one, the first, or the largest after it.

>>> [(window.before, window.after) for window in find_windows(run)]
[(5301, 5401), (14501, 16001)]
>>> spike_table(run).kept_before.sel(spike=2)
>>> with_spikes(trajectory_dataset(run.metrics, run.manifest.config)).spike_after.values
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.measures.arithmetic.spikes import Spike, SpikeCriterion
from bindscope.studies.assign_add.learning.phases import published_spikes, spikes_of
from bindscope.studies.framework.trajectory import trajectory_dataset

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

NOT_KEPT = -1
FURTHEST = 3  # a window may be this many times as long as its spike, and no less than FEWEST steps
FEWEST = 1500


@dataclass(frozen=True)
class Window:
    """One spike and three saved steps: the last before it, the first after it, and one earlier as a control."""

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


def with_spikes(trajectory: xr.Dataset, dataset: xr.Dataset | None = None) -> xr.Dataset:
    """The trajectory, or another dataset of the same run, with the trajectory's spikes over (spike)."""
    spikes = spikes_of(trajectory)
    return (trajectory if dataset is None else dataset).assign(
        xr.Dataset(
            {
                "spike_before": ("spike", np.array([spike.before_step for spike in spikes], int)),
                "spike_after": ("spike", np.array([spike.after_step for spike in spikes], int)),
                "spike_size": ("spike", np.array([spike.size for spike in spikes], float), {"units": "1"}),
                "spike_splits": ("spike", np.array([" ".join(spike.splits) for spike in spikes], str)),
            },
            {"spike": np.array([spike.number for spike in spikes], int)},
        )
    )


def read_spikes(dataset: xr.Dataset) -> list[Spike]:
    """The spikes that ``with_spikes`` wrote."""
    columns = (dataset[name].values for name in ("spike", "spike_before", "spike_after", "spike_splits", "spike_size"))
    return [
        Spike(int(number), int(before), int(after), tuple(str(splits).split()), float(size))
        for number, before, after, splits, size in zip(*columns)
    ]


def spike_table(run: Run) -> xr.Dataset:
    """Over (spike): ``before_step`` and ``after_step`` of the evaluations, ``size``, and the saved checkpoints around it,
    ``kept_before`` and ``kept_after`` (-1 where none is close by); over (spike, split) ``accuracy_before``,
    ``accuracy_after`` with intervals, and ``jumped``.
    """
    trajectory = trajectory_dataset(run.metrics, family="assign_add")
    spikes = spikes_of(trajectory)
    kept = {window.spike.number: (window.before, window.after) for window in find_windows(run)}
    steps = {end: np.array([getattr(spike, f"{end}_step") for spike in spikes], int) for end in ("before", "after")}
    splits = trajectory.split.values
    jumped = np.array([np.isin(splits, spike.splits) for spike in spikes], bool).reshape(len(spikes), len(splits))
    table = xr.Dataset(
        {
            "size": ("spike", np.array([spike.size for spike in spikes], float), {"units": "1"}),
            "jumped": (("spike", "split"), jumped),
        },
        {"spike": np.array([spike.number for spike in spikes], int), "split": splits},
    )
    for index, end in enumerate(("before", "after")):
        table[f"{end}_step"] = ("spike", steps[end])
        numbers = [kept.get(spike.number, (NOT_KEPT, NOT_KEPT))[index] for spike in spikes]
        table[f"kept_{end}"] = ("spike", np.array(numbers, int))
        at = trajectory.sel(step=steps[end])
        for interval in ("", "_low", "_high"):
            values = at[f"split_accuracy{interval}"].values
            table[f"accuracy_{end}{interval}"] = (("spike", "split"), values, {"units": "1"})
    return table.assign_attrs(title="spikes", criterion=SpikeCriterion().describe())
