"""Spikes of a run as labelled arrays: beside its curves, and as a table of what jumped.

>>> spike_table(run).kept_before.sel(spike=2)
>>> with_spikes(trajectory_dataset(run.metrics, run.manifest.config)).spike_after.values
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.measures.arithmetic.spikes import Spike, SpikeCriterion
from bindscope.studies.assign_add.learning.phases import spikes_of
from bindscope.studies.assign_add.learning.spike_windows import find_windows
from bindscope.studies.framework.trajectory import trajectory_dataset

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

NOT_KEPT = -1


def with_spikes(trajectory: xr.Dataset, dataset: xr.Dataset | None = None) -> xr.Dataset:
    """The trajectory, or another dataset of the same run, with the trajectory's spikes over (spike)."""
    spikes = spikes_of(trajectory)
    return (trajectory if dataset is None else dataset).assign(
        xr.Dataset(
            {
                "spike_before": ("spike", np.array([spike.before_step for spike in spikes], int)),
                "spike_after": ("spike", np.array([spike.after_step for spike in spikes], int)),
                "spike_size": ("spike", np.array([spike.size for spike in spikes], float), {"units": "1"}),
                "spike_pools": ("spike", np.array([" ".join(spike.pools) for spike in spikes], str)),
            },
            {"spike": np.array([spike.number for spike in spikes], int)},
        )
    )


def read_spikes(dataset: xr.Dataset) -> list[Spike]:
    """The spikes that ``with_spikes`` wrote."""
    columns = (dataset[name].values for name in ("spike", "spike_before", "spike_after", "spike_pools", "spike_size"))
    return [
        Spike(int(number), int(before), int(after), tuple(str(pools).split()), float(size))
        for number, before, after, pools, size in zip(*columns)
    ]


def spike_table(run: Run) -> xr.Dataset:
    """Over (spike): ``before_step`` and ``after_step`` of the evaluations, ``size``, and the kept checkpoints around it,
    ``kept_before`` and ``kept_after`` (-1 where none is close by); over (spike, pool) ``accuracy_before``,
    ``accuracy_after`` with intervals, and ``jumped``.
    """
    trajectory = trajectory_dataset(run.metrics, family="assign_add")
    spikes = spikes_of(trajectory)
    kept = {window.spike.number: (window.before, window.after) for window in find_windows(run)}
    steps = {end: np.array([getattr(spike, f"{end}_step") for spike in spikes], int) for end in ("before", "after")}
    pools = trajectory.pool.values
    jumped = np.array([np.isin(pools, spike.pools) for spike in spikes], bool).reshape(len(spikes), len(pools))
    table = xr.Dataset(
        {
            "size": ("spike", np.array([spike.size for spike in spikes], float), {"units": "1"}),
            "jumped": (("spike", "pool"), jumped),
        },
        {"spike": np.array([spike.number for spike in spikes], int), "pool": pools},
    )
    for place, end in enumerate(("before", "after")):
        table[f"{end}_step"] = ("spike", steps[end])
        numbers = [kept.get(spike.number, (NOT_KEPT, NOT_KEPT))[place] for spike in spikes]
        table[f"kept_{end}"] = ("spike", np.array(numbers, int))
        at = trajectory.sel(step=steps[end])
        for interval in ("", "_low", "_high"):
            values = at[f"pool_accuracy{interval}"].values
            table[f"accuracy_{end}{interval}"] = (("spike", "pool"), values, {"units": "1"})
    return table.assign_attrs(title="spikes", criterion=SpikeCriterion().describe())
