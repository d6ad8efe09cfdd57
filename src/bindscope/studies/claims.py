"""A claim is data: what a paper says, how it is measured here, and when the measurement agrees with it.

A claim names the *results* it reads (labelled datasets that ``studies/results.py`` makes and caches), and a *judge*: a
plain function from those datasets to a ``Finding``. No finding without a control.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

Verdict = Literal["replicates", "differs", "not testable"]


@dataclass(frozen=True)
class Quantity:
    """A measured number with its interval and what it was taken over."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int | None = None
    unit: Literal["share", "step", "1"] = "share"


@dataclass(frozen=True)
class Finding:
    """What a run says about a claim: a verdict, the numbers behind it, the control beside it, and why."""

    verdict: Verdict
    reason: str
    quantities: tuple[Quantity, ...] = ()
    control: tuple[Quantity, ...] = ()


@dataclass(frozen=True)
class Claim:
    """One published claim."""

    id: str  # VB3
    title: str
    statement: str  # what the paper says, in our words
    paper: str  # its figure or number
    measure: str  # how we measure it
    criterion: str  # when a run replicates it, in one sentence
    control_description: str
    results: tuple[str, ...]  # names of the results it reads
    judge: Callable[[Mapping[str, xr.Dataset]], Finding]
    draw: Callable[[Mapping[str, xr.Dataset]], Figure] | None = field(default=None)
