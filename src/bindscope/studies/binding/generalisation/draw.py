"""Figures of VB9 and VB10: what lies beyond training."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.binding.generalisation.measure import saw_one_length
from bindscope.studies.plots.heat_map import add_colour_bar, draw_fraction_map
from bindscope.studies.plots.style import BLUE, INK, MUTED, ORANGE, new_figure, set_fraction_ticks, title_figure


def draw_lengths(results: Mapping[str, xr.Dataset]) -> Figure:
    """Accuracy, and answers equal to line 1's constant where it is wrong, over length and depth."""
    dataset, whose = _judged_grid(results["lengths"], results["fixed-length"])
    n = int(dataset.n.max())
    with new_figure(9.6, 3.9) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        mesh = _draw_cells(left, dataset, dataset.accuracy, "right answers")
        _draw_cells(right, dataset, dataset.line_1_where_wrong, "line 1's constant, where it is wrong")
        left.set_ylabel("lines")
        add_colour_bar(right, mesh, percent=True)
        where = f"{whose} at its last checkpoint · up to {n:,} programs a cell, in per cent"
        title_figure(figure, "VB10 · Other lengths and depths", f"{where} · framed: trained lengths and depths")
    return figure


def _judged_grid(own: xr.Dataset, fixed: xr.Dataset) -> tuple[xr.Dataset, str]:
    """What the verdict is about, and whose it is: the run's own, or of models of one length where it saw several."""
    if saw_one_length(own) or not fixed.sizes["seed"]:
        return own, str(own.attrs.get("run", ""))
    return fixed.isel(seed=0), f"{fixed.attrs['preset']} on one length, seed {int(fixed.seed[0])},"


def draw_held_out(results: Mapping[str, xr.Dataset]) -> Figure:
    """Accuracy on combinations that training showed and never did."""
    dataset = results["held-out"]
    names = {"test": "shown in training", "held_out": "never shown"}
    with new_figure(5.6, 2.3) as figure:
        axes = figure.add_subplot()
        for index, (split, colour) in enumerate((("test", BLUE), ("held_out", ORANGE))):
            cell = dataset.sel(split=split)
            value, low, high = (float(cell[name]) for name in ("accuracy", "accuracy_low", "accuracy_high"))
            axes.barh(index, value, color=colour, height=0.6)
            axes.plot([low, high], [index, index], color=INK, linewidth=1.2)
            words = f"{names[split]}, n = {int(cell.n):,}"
            axes.text(0.015, index, words, va="center", fontsize=8, color="#ffffff")
            axes.text(value + 0.012, index, f"{100 * value:.1f} %", va="center", fontsize=8, color=INK)
        axes.set(xlim=(0, 1.12), yticks=[], ylim=(1.5, -0.5))
        set_fraction_ticks(axes.xaxis)
        axes.set_xlabel("right answers, with 95 % Wilson intervals")
        axes.spines["left"].set_visible(False)
        fraction = float(dataset.attrs.get("held_out", np.nan))
        title_figure(
            figure, "VB9 · Combinations never shown", f"{fraction:.0%} of (variable, constant) held out of training"
        )
    return figure


def _draw_cells(axes: Axes, dataset: xr.Dataset, values: xr.DataArray, title: str):  # type: ignore[no-untyped-def]
    cells = values.transpose("lines", "depth").values
    mesh = draw_fraction_map(axes, cells, dataset.lines.values, dataset.depth.values)
    axes.set_xlabel("depth of the queried chain")
    axes.set_title(title, fontsize=9, loc="left", color=MUTED)
    _frame_trained(axes, dataset)
    return mesh


def _frame_trained(axes: Axes, dataset: xr.Dataset) -> None:
    """A frame around the lengths and depths that training showed."""
    shortest, longest = int(dataset.attrs["trained_min_lines"]), int(dataset.attrs["trained_lines"])
    rows = np.flatnonzero((dataset.lines.values >= shortest) & (dataset.lines.values <= longest))
    columns = np.flatnonzero(dataset.depth.values <= int(dataset.attrs["trained_max_depth"]))
    left, right, top, bottom = columns[0] - 0.5, columns[-1] + 0.5, rows[0] - 0.5, rows[-1] + 0.5
    outline = ([left, right, right, left, left], [top, top, bottom, bottom, top])
    axes.plot(*outline, color=ORANGE, linewidth=1.6, clip_on=False)
