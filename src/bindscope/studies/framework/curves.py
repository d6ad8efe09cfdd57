"""Numbers over training that saved results hold, side by side: what changes first when a run learns?

A module of a study that makes a result over steps names in ``CURVES`` the numbers of it that are worth a curve. They are
gathered from what is saved, without running a model; each is asked when it turns (``measures/turning.py``).

>>> gather_curves(library, study.curves).turned_at
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from bindscope.measures.turning import Turn, find_turn

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.measures.phases import Phase
    from bindscope.studies.framework.results import Library


ENDS = ("value", "low", "high")
TURNS = ("turned_at", "turned_low", "turned_high", "start", "end")  # the fields of a Turn
WORDS = ("title", "explains", "result", "unit")


class NotMade(Exception):
    """Raised by ``Curve.read`` where a run's result does not hold this curve."""


@dataclass(frozen=True)
class Curve:
    """One number over training, read from a saved result."""

    id: str  # coefficient
    title: str  # local learning coefficient
    explains: str  # what it is and what its change says, in a sentence or two
    result: str  # the result that holds it
    read: Callable[
        [xr.Dataset], xr.Dataset
    ]  # ``value`` and, where there is an interval, ``low`` and ``high`` over (step)
    unit: str = "1"  # what one unit is; fraction: shown in per cent


def over_steps(values: xr.DataArray, low: xr.DataArray | None = None, high: xr.DataArray | None = None) -> xr.Dataset:
    """What ``Curve.read`` returns, of arrays over (step) that may carry other coordinates."""
    import xarray as xr

    arrays = {"value": values, **({} if low is None or high is None else {"low": low, "high": high})}
    for name, array in arrays.items():
        if array.dims != ("step",):
            raise ValueError(f"a curve's {name} is over (step), got {array.dims}")
    return xr.Dataset(
        {name: ("step", array.values.astype(float)) for name, array in arrays.items()}, {"step": values.step.values}
    )


def gather_curves(library: Library, curves: Sequence[Curve], phases: Iterable[Phase] = ()) -> xr.Dataset:
    """The curves whose results are saved: ``value``, ``low``, ``high`` over (curve, step), missing where a measure has no
    such step; ``turned_at`` with its interval over (curve). ``attrs["missing"]``: the results that are not measured yet.
    """
    import numpy as np
    import xarray as xr

    found, missing = _read_saved(library, curves)
    steps = sorted({int(step) for _, dataset in found for step in dataset.step.values})
    plateau = plateau_of(phases)
    values = np.full((3, len(found), len(steps)), np.nan)  # [value, low, high], curve, step
    turned = np.full((5, len(found)), np.nan)
    for index, (_, dataset) in enumerate(found):
        at = np.searchsorted(steps, dataset.step.values)
        for part, name in enumerate(ENDS):
            if name in dataset:
                values[part, index, at] = dataset[name].values
        turn = _turn_of(dataset, plateau)
        turned[:, index] = [np.nan if number is None else number for number in astuple(turn)]
    arrays = {name: (("curve", "step"), values[part]) for part, name in enumerate(ENDS)}
    numbers = {name: ("curve", turned[part]) for part, name in enumerate(TURNS)}
    words = {name: ("curve", [getattr(curve, name) for curve, _ in found]) for name in WORDS}
    dataset = xr.Dataset({**arrays, **numbers}, {"curve": [curve.id for curve, _ in found], "step": steps, **words})
    return dataset.assign_attrs(missing=", ".join(missing), plateau=[] if plateau is None else list(plateau))


def _read_saved(library: Library, curves: Sequence[Curve]) -> tuple[list[tuple[Curve, xr.Dataset]], list[str]]:
    """The curves that can be read without running a model, and the results that must be measured for others."""
    found: list[tuple[Curve, xr.Dataset]] = []
    missing: dict[str, None] = {}
    for curve in curves:
        filled = library.find(curve.result) if curve.result in library.results else None
        if filled is None:
            missing[curve.result] = None
        elif filled.dataset is not None:
            with suppress(NotMade):
                found.append((curve, curve.read(filled.dataset)))
    return found, list(missing)


def plateau_of(phases: Iterable[Phase]) -> tuple[int, int] | None:
    """The first and last step of the phase before the last one; None where a run has fewer than two."""
    named = list(phases)
    return (named[-2].first_step, named[-2].last_step) if len(named) > 1 else None


def _turn_of(dataset: xr.Dataset, plateau: tuple[int, int] | None) -> Turn:
    low, high = (dataset[name].values if name in dataset else None for name in ("low", "high"))
    return find_turn(dataset.step.values, dataset["value"].values, plateau, low, high)
