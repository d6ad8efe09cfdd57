"""Curves of different measures over the same steps, one strip each, with the phases behind and the turn of each marked."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.families import find_family
from bindscope.studies.plots.style import (
    BLUE,
    INK,
    MUTED,
    format_step,
    new_figure,
    phase_colours,
    set_fraction_ticks,
    set_step_axis,
    title_figure,
)

STRIP = 0.85  # inches of height a curve


def figure_development(dataset: xr.Dataset) -> Figure:
    """A strip for each curve, all over the same steps; what turns first stands first."""
    turned = dataset.turned_at.values
    order = np.argsort(np.where(np.isfinite(turned), turned, np.inf), kind="stable")
    with new_figure(8.5, 1.3 + STRIP * max(1, len(order))) as figure:
        strips = figure.subplots(max(1, len(order)), 1, sharex=True, squeeze=False)[:, 0]
        for axes, index in zip(strips, order):
            _draw_strip(axes, dataset.isel(curve=index), dataset.attrs)
        for axes in strips[:-1]:
            axes.set_xlabel("")
        title_figure(figure, f"{dataset.attrs['run']}: what turns when\n", "▏half way from the plateau to the end")
    return figure


def _draw_strip(axes: Axes, one: xr.Dataset, attrs: dict[str, object]) -> None:
    family = find_family(str(attrs["family"]))
    known = one.value.notnull().values
    steps = one.step.values
    set_step_axis(axes, steps, family.step_scale)
    colours = phase_colours(family.phase_names)
    for name, first, last in zip(*(attrs[f"phase_{part}"] for part in ("names", "first", "last"))):  # type: ignore[call-overload]
        axes.axvspan(first, last, color=colours[name], alpha=0.13, linewidth=0)
    if np.isfinite(one.low.values).any():
        axes.fill_between(
            steps[known], one.low.values[known], one.high.values[known], color=BLUE, alpha=0.25, linewidth=0
        )
    axes.plot(steps[known], one.value.values[known], color=BLUE, marker="o" if known.sum() < 15 else "", markersize=3)
    turned = float(one.turned_at)
    words = str(one.title.values)
    if np.isfinite(turned):
        axes.axvline(turned, color=INK, linewidth=1)
        words += f": step {format_step(turned)}"
    else:
        words += ": does not change"
    if str(one.unit.values) == "fraction":
        set_fraction_ticks(axes.yaxis)
    axes.set_title(words, loc="left", fontsize=8.5, color=MUTED, pad=3)
