"""What the experiments over width and shape found, in sentences made from the numbers of their datasets."""

from __future__ import annotations

import numpy as np
import xarray as xr

from bindscope.studies.framework.experiments import count_runs
from bindscope.studies.symbols.width.widths import find_first_n, largest_n, split_error, split_loss

KINDS = {"plain": "Without identity scaling", "both": "With it"}
SETTINGS = {"depth": "layers", "heads": "heads", "rate": "learning rate", "batch": "batch size"}


def conclude_copy(dataset: xr.Dataset) -> str:
    """The first n that suffices at each width, without and with identity scaling.

    >>> conclude_copy(load_experiment_dataset(find_experiment_dataset("copy")))
    'Without identity scaling the first n with an error below a tenth is 32 at width 32, …'
    """
    parts = []
    for model, words in KINDS.items():
        found = find_first_n(dataset, model)
        if found:
            listed = ", ".join(f"{first} at width {first.width:,}" for first in found)
            parts.append(f"{words} the first n with an error below a tenth on unseen symbols is {listed}.")
        reached = [first.n / first.width for first in found if first.reached]
        if reached and model == "plain":
            parts.append(f"That is {min(reached):.3g} to {max(reached):.3g} times the width.")
    worst = float(np.nanmax(split_error(dataset, "train")))
    parts.append(
        f"Symbols of training are copied with an error of {100 * worst:.1f} % at worst ({_runs(dataset)}, each when "
        "validation symbols are copied best)."
    )
    return " ".join(parts)


def conclude_width(dataset: xr.Dataset) -> str:
    """The loss on unseen symbols at each width."""
    chosen = largest_n(dataset)
    listed = ", ".join(
        f"{_spread(row)} at width {int(width):,}" for width, row in zip(chosen.width.values, split_loss(chosen))
    )
    trained = float(np.nanmax(split_loss(chosen, "train")))
    return (
        f"At n = {int(chosen.n.values[0]):,} the loss on unseen symbols is {listed}; 1 is that of knowing nothing. Training "
        f"sequences are learned to a loss of {trained:.3f} at worst ({_runs(chosen)})."
    )


def conclude_shape(dataset: xr.Dataset) -> str:
    """For each model and setting the loss on unseen symbols at every value."""
    parts = []
    for model, words in KINDS.items():
        of_model = dataset.isel(variant=np.flatnonzero(dataset.model.values == model))
        for setting, name in SETTINGS.items():
            there = of_model.isel(variant=np.flatnonzero(of_model.setting.values == setting)).sortby("value")
            if there.sizes["variant"]:
                n = int(there.n.values[0])
                pairs = zip(there.value.values, split_loss(there))
                listed = ", ".join(f"{float(value):g}: {_spread(row)}" for value, row in pairs)
                parts.append(f"{words}, n = {n:,}, by {name}: {listed}.")
    return f"Loss on unseen symbols ({_runs(dataset)}; 1 is that of knowing nothing). {' '.join(parts)}"


def _spread(losses: np.ndarray) -> str:
    """``0.61 (0.58–0.66)``: the mean over seeds, and their range where there are several."""
    known = losses[np.isfinite(losses)]
    if not len(known):
        return "not trained"
    mean = f"{known.mean():.2f}"
    return mean if len(known) == 1 else f"{mean} ({known.min():.2f}–{known.max():.2f})"


def _runs(dataset: xr.Dataset) -> str:
    return f"{count_runs(dataset)} runs, up to {float(dataset.last_step.max()):,.0f} steps"
