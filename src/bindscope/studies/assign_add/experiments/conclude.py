"""What each experiment beyond the paper's sweeps found, in sentences made from the numbers of its dataset.

The nine splits are three kinds of sums: as in training, with a pair of numbers that training held out, with a variable in
a position where training never showed it. A kind is learned from the step at which the last of its splits is at 90 % for good.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

KINDS: Mapping[str, tuple[str, ...]] = {
    "as in training": ("0tr", "1tr", "2tr"),
    "with held-out pairs": ("0add", "1add", "2add"),
    "in new positions": ("1var", "2var1", "2var2"),
}


def conclude_options(dataset: xr.Dataset) -> str:
    """One sentence on how many runs learned every kind, then one for each variant.

    >>> conclude_options(load_experiment_dataset(find_experiment_dataset("modulus")))
    'All nine splits reach 90 % within 3,000 steps in 5 of 8 runs. modulus-13: …'
    """
    runs = [(str(name), int(seed)) for name in dataset.variant.values for seed in dataset.seed.values]
    runs = [run for run in runs if bool(cell_of(dataset, *run).last_step.notnull())]
    whole = sum(bool(cell_of(dataset, *run).learned.notnull().all()) for run in runs)
    variants = [
        f"{name}: {'; '.join(_describe_run(cell_of(dataset, *run)) for run in runs if run[0] == name)}."
        for name in dict.fromkeys(run[0] for run in runs)
    ]
    steps = f"{float(dataset.last_step.max()):,.0f}"
    return f"All nine splits reach 90 % within {steps} steps in {whole} of {len(runs)} runs. {' '.join(variants)}"


def kind_learned(cell: xr.Dataset, kind: str) -> float:
    """The step from which all splits of a kind are at 90 %; NaN where one never is."""
    return float(cell.learned.sel(split=list(KINDS[kind])).max(skipna=False))


def cell_of(dataset: xr.Dataset, variant: str, seed: int) -> xr.Dataset:
    return dataset.sel(variant=variant, seed=seed)


def _describe_run(cell: xr.Dataset) -> str:
    """``seed 0 learns sums as in training (step 900), not with held-out pairs (2add ends at 41 %)``."""
    steps = {kind: kind_learned(cell, kind) for kind in KINDS}
    learned = [f"{kind} (step {step:,.0f})" for kind, step in steps.items() if not np.isnan(step)]
    missed = [f"{kind} ({_describe_lowest(cell, kind)})" for kind, step in steps.items() if np.isnan(step)]
    if not learned:
        return f"seed {int(cell.seed)} learns none of the kinds: {', '.join(missed)}"
    return f"seed {int(cell.seed)} learns sums {', '.join(learned)}{', not ' if missed else ''}{', nor '.join(missed)}"


def _describe_lowest(cell: xr.Dataset, kind: str) -> str:
    """The split of a kind that ends lowest: ``2var2 ends at 41 %``."""
    last = cell.last_accuracy.sel(split=list(KINDS[kind]))
    lowest = last.isel(split=int(last.argmin("split")))
    return f"{lowest.split.item()} ends at {100 * float(lowest):.0f} %"


def conclude_identity_sums(dataset: xr.Dataset) -> str:
    """When each variant learned, then what the runs with both paths owe to each part."""
    text = conclude_options(dataset)
    if "accuracy_without" not in dataset or "both" not in dataset.variant.values:
        return text
    both = dataset.sel(variant="both").dropna("seed", subset=["whole_accuracy"])
    parts = [
        f"{part} {', '.join(_show_range(both.accuracy_without.sel(part=part, layer=layer)) for layer in both.layer.values)}"
        for part in map(str, both.part.values)
    ]
    positive = {name: int((both[name] > 0).sum()) for name in ("scaled_a", "scaled_b")}
    return (
        f"{text} In the {both.sizes['seed']} run{'s' if both.sizes['seed'] > 1 else ''} with both paths {_show_range(both.whole_accuracy)} of all sums come out "
        f"right; without a part in layer 0 and in layer 1: {'; '.join(parts)}. "
        f"{positive['scaled_a']} of {both.scaled_a.size} heads have a positive a, {positive['scaled_b']} a positive b."
    )


def _show_range(fractions: xr.DataArray) -> str:
    """``12.0 %`` or ``12.0–31.5 %``: the range over seeds."""
    low, high = (f"{100 * float(value):.1f}" for value in (fractions.min(), fractions.max()))
    return f"{low} %" if low == high else f"{low}–{high} %"
