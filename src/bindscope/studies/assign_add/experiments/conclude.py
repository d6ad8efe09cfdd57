"""What each experiment of study 2 found, in sentences made from the numbers of its dataset."""

from __future__ import annotations

import numpy as np
import xarray as xr

from bindscope.studies.assign_add.sweeps.swept import PAIR_FRACTION, TWO_VARIABLE_FREQUENCY, Curve, Sweep, threshold_of


def conclude_pair_fraction(dataset: xr.Dataset) -> str:
    return conclude_sweep(dataset, PAIR_FRACTION)


def conclude_two_variable_frequency(dataset: xr.Dataset) -> str:
    return conclude_sweep(dataset, TWO_VARIABLE_FREQUENCY)


def conclude_sweep(dataset: xr.Dataset, sweep: Sweep) -> str:
    """How many runs there are, the thresholds along the sweep, and whether what training shows was learned."""
    n_runs = int(np.isfinite(dataset.last_step.values).sum())
    steps = float(dataset.last_step.max())
    parts = [
        f"{n_runs} runs of {dataset.attrs['preset']} at {dataset.sizes['variant']} values, up to {steps:,.0f} steps.",
        *(_describe(dataset, sweep, curve) for curve in (sweep.asked, sweep.beside)),
    ]
    for curve in sweep.trained:
        accuracies = curve.accuracies(dataset)
        parts.append(
            f"Accuracy on sums of {curve.label} lies between {_percent(np.nanmin(accuracies))} and "
            f"{_percent(np.nanmax(accuracies))} over the whole sweep."
        )
    return " ".join(parts)


def _describe(dataset: xr.Dataset, sweep: Sweep, curve: Curve) -> str:
    values, means = dataset[sweep.coordinate].values, np.nanmean(curve.accuracies(dataset), axis=1)
    first, last = _percent(means[values.argmin()]), _percent(means[values.argmax()])
    fitted = threshold_of(dataset, sweep, curve)
    sentence = f"Sums of {curve.label}: from {first} at {values.min():g} to {last} at {values.max():g} ({sweep.label})"
    if fitted is None:
        return f"{sentence}; too few values for a threshold."
    return (
        f"{sentence}; the fitted threshold is {fitted.value:.2f} (95 % interval {fitted.low:.2f}–{fitted.high:.2f}), and "
        f"the rise from a tenth to nine tenths of the way takes {fitted.rise:.2f}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
