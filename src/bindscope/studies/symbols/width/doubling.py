"""Axes of numbers that double: widths, and sizes of training sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

MANY = 8  # ticks: more are written smaller


def set_doubling_axis(axes: Axes, values: Iterable[float], which: Literal["x", "y"]) -> None:
    """A logarithmic axis with a tick for each value that is there."""
    ticks = sorted({float(value) for value in values})
    (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=2)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < 1 else f"{value:,.0f}"))
    if len(ticks) > MANY:
        axes.tick_params(axis=which, labelsize=7)
