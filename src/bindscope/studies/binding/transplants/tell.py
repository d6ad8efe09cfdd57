"""What transplants and retraining of a run showed, each in one sentence that is computed from its numbers."""

from __future__ import annotations

import numpy as np
import xarray as xr

WHOLE = "everything"
LEAST_SOONER = 2  # evaluations by which a cell must be sooner, or later, than another in every order of the data


def tell_transplants(dataset: xr.Dataset) -> str:
    """Which single part of the nearest donor carries most of the way, beside its control.

    >>> tell_transplants(result)
    'Put into step 400, L0 of step 1,000 carries 43 % [36, 50] of the way to following chains, a change …'
    """
    into = dataset.isel(donor=0).sel(direction="reproduce")
    into = into.isel(part=np.flatnonzero(into.part.values != WHOLE))
    best = _most(into)
    low, random = float(best.total_fraction_low), float(best.random_fraction.max())
    where, giver = f"into step {int(dataset.attrs['receiver']):,}", f"step {int(dataset.donor[0]):,}"
    if low <= max(random, 0):
        return (
            f"No part of {giver}, put {where}, makes it follow chains: the best, {best.part.item()}, carries "
            f"{_way(best)} of the way, a change at random up to {100 * random:.0f} %."
        )
    told = (
        f"Put {where}, {best.part.item()} of {giver} carries {_way(best)} of the way to following chains, "
        f"{'patterns of other programs' if best.kind == 'pattern' else 'a change at random of that size'} at most "
        f"{100 * random:.0f} %"
    )
    if best.kind != "pattern":
        return f"{told}."
    weights = _most(into.isel(part=np.flatnonzero(into.kind.values == "weights")))
    return f"{told}; of its weights, {weights.part.item()} carries most, {_way(weights)}."


def _most(into: xr.Dataset) -> xr.Dataset:
    return into.isel(part=int(into.total_fraction.values.argmax()))


def _way(part: xr.Dataset) -> str:
    value, low, high = (100 * float(part[f"total_fraction{end}"]) for end in ("", "_low", "_high"))
    return f"{value:.0f} % [{low:.0f}, {high:.0f}]"


def tell_retraining(dataset: xr.Dataset) -> str:
    """Which part, given early, ends the plateau sooner than none and than a change at random; and which one, held, delays it."""
    margin = LEAST_SOONER * int(dataset.attrs["every"])
    left = dataset.left.fillna(np.inf)
    baseline = dataset.baseline_left.fillna(np.inf)
    given, random, held = (left.sel(condition=name) for name in ("trained", "random", "held"))
    sooner = ((given + margin <= baseline) & (given + margin <= random) & np.isfinite(given)).all("seed")
    later = (held >= baseline + margin).all("seed") & np.isfinite(baseline).all()
    names = dataset.part.values[np.argsort(given.mean("seed").values, kind="stable")]
    ahead = [
        f"{name} ({_steps(dataset.left.sel(part=name, condition='trained'))})"
        for name in names
        if sooner.sel(part=name)
    ]
    behind = [
        f"{name} ({_steps(dataset.left.sel(part=name, condition='held'), int(dataset.attrs['most_steps']))})"
        for name in dataset.part.values
        if later.sel(part=name)
    ]
    usual = f"without any part it takes {_steps(dataset.baseline_left, int(dataset.attrs['most_steps']))} steps"
    first = (
        f"Given early and trained on, {_join(ahead)} {'ends' if len(ahead) == 1 else 'end'} the plateau sooner than a change at "
        f"random; {usual}."
        if ahead
        else f"No part, given early and trained on, ends the plateau sooner than both none and a change at random; {usual}."
    )
    second = (
        f" Held as it was, {_join(behind, 'or')} delays its end."
        if behind
        else " Holding no single part delays its end."
    )
    return first + second


def _steps(left: xr.DataArray, most: int = 0) -> str:
    return " and ".join(f"over {most}" if step != step else f"{step:.0f}" for step in left.values.tolist())


def _join(names: list[str], word: str = "and") -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"
