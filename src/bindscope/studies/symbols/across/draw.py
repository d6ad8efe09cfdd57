"""The figure of identity scaling on programs and on sums: a row for each start and path, a mark for each seed."""

from __future__ import annotations

from math import inf, isfinite

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bindscope.studies.plots.experiment_charts import spread_marks
from bindscope.studies.plots.style import (
    BLUE,
    GREY,
    INK,
    MUTED,
    ORANGE,
    format_step,
    label_rows,
    new_figure,
    title_figure,
)
from bindscope.studies.symbols.across.measure import COMPARISONS, count_learned, known_paths, tell_ratio

COLOURS = {"off": GREY, "qk": ORANGE, "vo": "#8c5fbf", "both": BLUE}
LABELS = {"off": "off", "qk": "scores", "vo": "outputs", "both": "both"}
NOTE = "a dot a seed, an arrow where the run ended first; line and bar: median and its 95 % interval (from six seeds on); right: how many times as many it takes without"
TITLES = {"binding": "Programs: every depth at 90 % for good", "sums": "Sums: all nine splits at 90 % for good"}


def draw_across(dataset: xr.Dataset) -> Figure:
    """A panel for each family.

    >>> save_figure(draw_across(across_dataset(load_across())), Path("across.svg"))
    """
    rows = {family: _rows(dataset, family) for family in TITLES}
    height = 1.9 + 0.3 * max(len(each) for each in rows.values())
    with new_figure(11.5, height) as figure:
        figure.get_layout_engine().set(w_pad=0.15)  # type: ignore[union-attr, call-arg]
        for axes, (family, title) in zip(figure.subplots(1, len(rows)), TITLES.items()):
            _draw_family(axes, dataset, rows[family])
            axes.set_title(title, loc="left", fontsize=10, fontweight="bold", pad=16)
        title_figure(figure, "Identity scaling: examples until the task is learned", NOTE)
    return figure


def _rows(dataset: xr.Dataset, family: str) -> list[tuple[str, str]]:
    """(comparison, path) from top to bottom."""
    names = [each.name for each in COMPARISONS if each.family == family]
    return [(name, path) for name in names for path in known_paths(dataset.sel(comparison=name))]


def _draw_family(axes: Axes, dataset: xr.Dataset, rows: list[tuple[str, str]]) -> None:
    if not rows:
        axes.set_axis_off()
        axes.text(0, 0.5, "no runs yet", transform=axes.transAxes, color=MUTED)
        return
    seen = dataset.examples_seen.sel(comparison=sorted({name for name, _ in rows}))
    end = float(seen.max())
    for y, (name, path) in enumerate(rows):
        row = dataset.sel(comparison=name)
        _draw_interval(axes, row.sel(path=path), y, end, COLOURS[path])
        _draw_runs(axes, row.sel(path=path), y, COLOURS[path])
        axes.text(1.09 * end, y, _tell_ratio(row, path), va="center", fontsize=7.5, color=INK)
        if y and rows[y - 1][0] != name:
            axes.axhline(y - 0.5, color=GREY, lw=0.5)
    labels = [f"{name.partition(', ')[2]}  {LABELS[path]}" if path == "off" else LABELS[path] for name, path in rows]
    label_rows(axes, [label.strip() for label in labels])
    axes.set_xlim(0, 1.06 * end)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_step(value)))
    axes.set_xlabel("examples seen", labelpad=2)
    axes.text(1.09 * end, -0.55, "off / this (95 %)", fontsize=7.5, color=MUTED, va="bottom")


def _draw_runs(axes: Axes, cell: xr.Dataset, y: float, colour: str) -> None:
    there = np.flatnonzero(~np.isnan(cell.examples.values))
    for seed, offset in zip(there, spread_marks(len(there), 0.13, 0.6)):
        examples, seen = float(cell.examples[seed]), float(cell.examples_seen[seed])
        if isfinite(examples):
            axes.plot([examples], [y + offset], "o", color=colour, ms=5, alpha=0.9)
        else:
            axes.plot([seen], [y + offset], ">", color=colour, ms=5.5, mfc="white", mew=1.2, clip_on=False, zorder=3)


def _draw_interval(axes: Axes, cell: xr.Dataset, y: float, end: float, colour: str) -> None:
    low, high = float(cell.median_low), float(cell.median_high)
    if low > 0 or high < inf:  # else there are too few runs for one
        axes.plot([low, min(high, 1.06 * end)], [y, y], color=colour, lw=7, alpha=0.22, solid_capstyle="butt", zorder=1)
    lowest, highest = float(cell.median_lowest), float(cell.median_highest)
    if lowest == highest:
        axes.plot([lowest, lowest], [y - 0.32, y + 0.32], color=colour, lw=1.6, zorder=2)


def _tell_ratio(row: xr.Dataset, path: str) -> str:
    if path == "off":
        return ""
    if not (count_learned(row, path)[0] or count_learned(row, "off")[0]):
        return "none learned"
    estimate, interval, _ = tell_ratio(row.sel(path=path), "ratio")
    return f"{estimate}  ({interval})"
