"""What a sweep over one setting of sums asks: which accuracies are looked at along it, and the threshold in each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.stats.thresholds import Threshold, fit_threshold
from bindscope.studies.framework.presets import find_preset


@dataclass(frozen=True)
class Curve:
    """One accuracy along a sweep: a pool, or the pairs of it that are held out in both orders."""

    label: str
    pool: str
    half: str | None = None

    def accuracies(self, dataset: xr.Dataset) -> np.ndarray:
        """At the end of each run: [variant, seed]."""
        if self.half is not None:
            found = dataset.last_half_accuracy.sel(pool=self.pool, half=self.half)
        else:
            found = dataset.last_accuracy.sel(pool=self.pool)
        return found.transpose("variant", "seed").values.astype(float)


@dataclass(frozen=True)
class Sweep:
    """A setting that is swept and what is asked of the runs: the curve with a threshold, one more, and those without."""

    coordinate: str
    label: str
    asked: Curve
    beside: Curve
    trained: tuple[Curve, ...]  # what training shows at every value: it must be learned all along


PAIR_FRACTION = Sweep(
    "pair_fraction",
    "share of pairs trained on",
    Curve("held-out pairs", "0add"),
    Curve("pairs held out in both orders", "0add", "both_held"),
    (Curve("trained pairs", "0tr"),),
)
TWO_VARIABLE_FREQUENCY = Sweep(
    "two_variable_frequency",
    "frequency of two-variable sums",
    Curve("two variables (held-out pairs)", "2add"),
    Curve("two variables (trained pairs)", "2tr"),
    (Curve("no variable (trained pairs)", "0tr"), Curve("one variable (trained pairs)", "1tr")),
)


def run_values(dataset: xr.Dataset, sweep: Sweep) -> np.ndarray:
    """The setting of every run: [variant, seed]."""
    values = dataset[sweep.coordinate].values.astype(float)
    return np.broadcast_to(values[:, None], (len(values), dataset.sizes["seed"]))


def modulus_of(dataset: xr.Dataset) -> int:
    """Of the sums that were trained."""
    return int(find_preset(str(dataset.attrs["preset"])).config.task.modulus)  # type: ignore[attr-defined]


def threshold_of(dataset: xr.Dataset, sweep: Sweep, curve: Curve) -> Threshold | None:
    """The threshold in a curve along the sweep; None where there are too few values."""
    values, accuracies = run_values(dataset, sweep), curve.accuracies(dataset)
    return _fit(tuple(values.ravel()), tuple(accuracies.ravel()), 1 / modulus_of(dataset))


@lru_cache(maxsize=32)
def _fit(values: tuple[float, ...], accuracies: tuple[float, ...], floor: float) -> Threshold | None:
    try:
        return fit_threshold(np.array(values), np.array(accuracies), floor)
    except BindscopeError:
        return None
