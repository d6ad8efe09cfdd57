"""What ``copy_directions`` says, over its seeds: numbers for a table, a figure and a verdict."""

from __future__ import annotations

import numpy as np
import xarray as xr

from bindscope.intervals import student_interval
from bindscope.studies.framework.claims import Quantity


def mean_over_seeds(dataset: xr.Dataset, name: str, model: str, width: int, step: int, label: str = "") -> Quantity:
    """The mean over seeds of what layers have on average, with Student's interval where there are several seeds.

    >>> str(mean_over_seeds(dataset, "ratio", "plain", width=512, step=4, label="ratio"))
    'ratio 0.135 [0.12–0.15]'
    """
    cell = dataset[name].sel(model=model, width=width)
    if "step" in cell.dims:
        cell = cell.sel(step=step)
    seeds = np.atleast_1d(cell.mean([dim for dim in cell.dims if dim != "seed"]).values.astype(float))
    low, high = student_interval(seeds) if len(seeds) > 1 else (None, None)
    return Quantity(label or name, float(seeds.mean()), low, high, len(seeds), "1")


def widths_of(dataset: xr.Dataset) -> list[int]:
    return [int(width) for width in dataset.width.values]


def last_step(dataset: xr.Dataset) -> int:
    """The last of the steps at which updates were read."""
    return int(dataset.step.values[-1])
