"""What a sweep over one setting of sums asks: which accuracies are looked at along it, the threshold in each, and
what its experiment found, in sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.stats.thresholds import Threshold, fit_threshold
from bindscope.studies.framework.experiments import count_runs
from bindscope.studies.framework.presets import find_preset

ALL_NEW = "2add, 2var1 and 2var2"  # as one: the authors' test of two-variable sums


@dataclass(frozen=True)
class Curve:
    """One accuracy along a sweep: a split, the pairs of it that are held out in both orders, or all new two-variable sums."""

    label: str
    split: str
    half: str | None = None

    def accuracies(self, dataset: xr.Dataset) -> np.ndarray:
        """At the end of each run: [variant, seed]."""
        if self.split == ALL_NEW:
            found = dataset.new_accuracy
        elif self.half is not None:
            found = dataset.last_half_accuracy.sel(split=self.split, half=self.half)
        else:
            found = dataset.last_accuracy.sel(split=self.split)
        return found.transpose("variant", "seed").values.astype(float)

    def over_training(self, cell: xr.Dataset) -> xr.DataArray:
        """Over the recorded steps of one run; all new sums as the splits that they are made of, by size."""
        if self.split == ALL_NEW:
            return (cell.split_accuracy * cell.new_weight).sum("split", skipna=False).dropna("step")
        return cell.split_accuracy.sel(split=self.split).dropna("step")


@dataclass(frozen=True)
class Sweep:
    """A setting that is swept and what is asked of the runs: the curve with a threshold, one more, and those without."""

    experiment: str
    title: str
    coordinate: str
    label: str
    asked: Curve
    beside: Curve
    trained: tuple[Curve, ...]  # what training shows at every value: it must be learned all along
    shown_beside: Sweep | None = None  # another sweep of the same setting


PAIR_FRACTION = Sweep(
    "pair-fraction",
    "How many pairs are enough",
    "pair_fraction",
    "fraction of pairs trained on",
    Curve("held-out pairs", "0add"),
    Curve("pairs held out in both orders", "0add", "both_held"),
    (Curve("trained pairs", "0tr"),),
)
TWO_VARIABLE_FREQUENCY = Sweep(
    "two-variable-frequency",
    "How many sums of two variables are enough",
    "two_variable_frequency",
    "frequency of two-variable sums",
    Curve("two variables (held-out pairs)", "2add"),
    Curve("two variables (trained pairs)", "2tr"),
    (Curve("no variable (trained pairs)", "0tr"), Curve("one variable (trained pairs)", "1tr")),
)
TWO_VARIABLE_ROWS = Sweep(
    "two-variable-rows",
    "How many sums of two variables must ever be shown",
    "two_variable_frequency",
    "fraction of two-variable rows shown",
    Curve("two variables, never shown", ALL_NEW),
    Curve("two variables (trained pairs)", "2tr"),
    TWO_VARIABLE_FREQUENCY.trained,
    TWO_VARIABLE_FREQUENCY,
)


def sweep_of(dataset: xr.Dataset) -> Sweep:
    """Which sweep an experiment's dataset is of."""
    if "new_accuracy" in dataset:
        return TWO_VARIABLE_ROWS
    return next(sweep for sweep in (PAIR_FRACTION, TWO_VARIABLE_FREQUENCY) if sweep.coordinate in dataset.coords)


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


def conclude_sweep(dataset: xr.Dataset) -> str:
    """How many runs there are, the thresholds along the sweep, and whether what training shows was learned."""
    sweep, steps = sweep_of(dataset), float(dataset.last_step.max())
    parts = [
        f"{count_runs(dataset)} runs of {dataset.attrs['preset']} at {dataset.sizes['variant']} values, up to {steps:,.0f} steps.",
        *(_describe(dataset, sweep, curve) for curve in (sweep.asked, sweep.beside)),
    ]
    for curve in sweep.trained:
        accuracies = curve.accuracies(dataset)
        parts.append(
            f"Accuracy on sums of {curve.label} lies between {show_percent(np.nanmin(accuracies))} and "
            f"{show_percent(np.nanmax(accuracies))} over the whole sweep."
        )
    return " ".join(parts)


def _describe(dataset: xr.Dataset, sweep: Sweep, curve: Curve) -> str:
    values, means = dataset[sweep.coordinate].values, np.nanmean(curve.accuracies(dataset), axis=1)
    first, last = show_percent(means[values.argmin()]), show_percent(means[values.argmax()])
    fitted = threshold_of(dataset, sweep, curve)
    sentence = f"Sums of {curve.label}: from {first} at {values.min():g} to {last} at {values.max():g} ({sweep.label})"
    if fitted is None:
        return f"{sentence}; too few values for a threshold."
    return (
        f"{sentence}; the fitted threshold is {fitted.value:.2f} (95 % interval {fitted.low:.2f}–{fitted.high:.2f}), and "
        f"the rise from a tenth to nine tenths of the way takes {fitted.rise:.2f}."
    )


def show_percent(fraction: float) -> str:
    """``0.417`` → ``41.7 %``."""
    return f"{100 * fraction:.1f} %"


@lru_cache(maxsize=32)
def _fit(values: tuple[float, ...], accuracies: tuple[float, ...], floor: float) -> Threshold | None:
    try:
        return fit_threshold(np.array(values), np.array(accuracies), floor)
    except BindscopeError:
        return None
