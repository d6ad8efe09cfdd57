"""Numbers for findings: fractions with Wilson intervals, and cells of datasets with the intervals they carry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from bindscope.intervals import wilson_interval
from bindscope.studies.framework.claims import Quantity, Unit, ends_of


def fraction_of(label: str, fraction: float, n: int) -> Quantity:
    """A fraction of ``n`` with its Wilson interval; anything is possible of one that is missing.

    >>> str(fraction_of("heads", 0.5, 10))
    'heads 50 % [23.7–76.3]'
    """
    if np.isnan(fraction):
        return Quantity(label, float("nan"), 0.0, 1.0, int(n))
    low, high = wilson_interval(np.clip(fraction * n, 0, n), n)
    return Quantity(label, float(fraction), float(low), float(high), int(n))


def cell_of(
    label: str, dataset: xr.Dataset, name: str, n: int | None = None, unit: Unit = "fraction", **where: Any
) -> Quantity:
    """One cell of ``dataset[name]`` with its ``_low`` and ``_high``, and the count in ``n`` where it has one."""
    cell = dataset.sel(where)
    if n is None and "n" in cell and cell["n"].ndim == 0:
        n = int(cell["n"])
    return Quantity(label, float(cell[name]), float(cell[f"{name}_low"]), float(cell[f"{name}_high"]), n, unit)


def range_of(
    label: str, values: ArrayLike, unit: Unit = "fraction", middle: Literal["mean", "median"] = "mean"
) -> Quantity:
    """The mean or median of what is known, with the smallest and largest where an interval would stand.

    >>> str(range_of("accuracy", [0.5, 0.75, np.nan]))
    'accuracy (mean, range) 62.5 % [50–75]'
    """
    known = np.asarray(values, float)
    known, label = known[np.isfinite(known)], f"{label} ({middle}, range)"
    if not len(known):
        return Quantity(label, float("nan"), n=0, unit=unit)
    centre = known.mean() if middle == "mean" else np.median(known)
    return Quantity(label, float(centre), float(known.min()), float(known.max()), len(known), unit)


def difference_of(label: str, first: Quantity, second: Quantity, unit: Unit | None = None) -> Quantity:
    """How much higher the first of two independent quantities is, with Newcombe's interval from those of both.

    >>> str(difference_of("surplus", fraction_of("a", 0.5, 100), fraction_of("b", 0.2, 100)))
    'surplus 30 % [16.8–41.7]'
    """
    (low_1, high_1), (low_2, high_2) = ends_of(first), ends_of(second)
    difference = first.value - second.value
    below = np.hypot(first.value - low_1, high_2 - second.value)
    above = np.hypot(high_1 - first.value, second.value - low_2)
    return Quantity(
        label, difference, float(difference - below), float(difference + above), first.n, unit or first.unit
    )


def times(quantity: Quantity, factor: float) -> Quantity:
    """A positive multiple of a quantity and its interval."""
    low, high = ends_of(quantity)
    return replace(quantity, value=factor * quantity.value, low=factor * low, high=factor * high)
