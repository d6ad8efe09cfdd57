"""Figures of interventions: a heat map of a grid, or a curve where there is one number a step.

Fractions are drawn in cividis from 0 to 100 %, changes that can go both ways in blue–white–orange around 0.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from bindscope.studies.plots.heat_map import BOTH_WAYS, add_colour_bar, draw_cells, write_cells
from bindscope.studies.plots.style import BLUE, INK, figure_style, format_step, set_fraction_axis, set_step_axis

METRIC_NAMES = {
    "success": "answer becomes the source's",
    "kept": "answer stays the base's",
    "logit_difference": "logit difference, 0 base → 1 source",
    "new_logit": "new answer's logit, 0 base → 1 source",
    "kl": "KL from the base run (nats)",
    "accuracy": "accuracy",
}
FRACTIONS = ("success", "kept", "accuracy")
WRITE_BELOW = 140  # cells of a heat map up to which each shows its number


def figure_summary(summary: xr.Dataset, metric: str, title: str) -> Figure:
    """The figure that fits a summary (means with ``_low`` and ``_high``): a heat map of two dimensions, bars of one,
    and over several steps a curve or a heat map step by step, in which each cell is the best layer.

    >>> save_figure(figure_summary(summarise_outcomes(grid, rng), "success", "binding-laptop"), Path("grid.svg"))
    """
    several = "step" in summary.dims and summary.sizes["step"] > 1
    if "step" in summary.dims and not several:
        summary = summary.isel(step=0)
    with figure_style():
        if several:
            return _figure_steps(summary, metric, title)
        dims = [str(dim) for dim in summary[metric].dims]
        return _figure_grid(summary, metric, title) if len(dims) == 2 else _figure_bars(summary, metric, title)


def draw_heat_map(axes: Axes, cells: np.ndarray, metric: str) -> None:
    """``cells [row, column]`` of a metric, row 0 at the bottom, with its colour bar."""
    limits, colours = colour_scale(cells, metric)
    mesh = draw_cells(axes, cells, colours=colours, limits=limits)
    add_colour_bar(axes, mesh, METRIC_NAMES.get(metric, metric), percent=metric in FRACTIONS)
    if cells.size <= WRITE_BELOW:
        write_cells(axes, mesh, cells, lambda value: _number(value, metric), 6.5)


def colour_scale(cells: np.ndarray, metric: str) -> tuple[tuple[float, float], str | LinearSegmentedColormap]:
    """Fixed limits where a metric has them, so that figures can be laid side by side."""
    largest = float(np.nanmax(np.abs(cells))) if np.isfinite(cells).any() else 1.0
    if metric in FRACTIONS:
        return (0.0, 1.0), "cividis"
    if metric == "kl":
        return (0.0, max(largest, 1e-6)), "viridis"
    largest = max(1.0 if metric in METRIC_NAMES else 1e-6, largest)  # one's own metric has a range of its own
    return (-largest, largest), BOTH_WAYS


def _number(value: float, metric: str) -> str:
    return f"{100 * value:.0f}" if metric in FRACTIONS else f"{round(value, 2) + 0.0:.2f}"


def _figure_grid(summary: xr.Dataset, metric: str, title: str) -> Figure:
    rows, columns = (str(dim) for dim in summary[metric].dims)
    cells = summary[metric].values
    height = 0.42 if len(cells) <= 8 else 0.26
    figure = Figure(figsize=(2.1 + min(9.0, 0.55 * cells.shape[1]), 1.3 + height * len(cells)), layout="constrained")
    axes = figure.add_subplot()
    draw_heat_map(axes, cells, metric)
    _name_axis(axes, "x", summary[columns])
    _name_axis(axes, "y", summary[rows])
    axes.set_title(title, loc="left", fontsize=9, color=INK)
    return figure


def _name_axis(axes: Axes, which: str, labels: xr.DataArray) -> None:
    names = [str(value) for value in labels.values]
    axis = axes.xaxis if which == "x" else axes.yaxis
    if len(names) <= 30:
        axis.set_ticks(range(len(names)), names)
        if which == "x" and max(map(len, names)) > 3:
            for label in axes.get_xticklabels():
                label.set(rotation=40, ha="right", rotation_mode="anchor")
    else:
        axis.set_major_locator(MaxNLocator(nbins=12, integer=True))
        axis.set_major_formatter(FuncFormatter(lambda index, _: names[int(index)] if 0 <= index < len(names) else ""))
    axis.set_label_text(str(labels.name))


def _figure_bars(summary: xr.Dataset, metric: str, title: str) -> Figure:
    """One number or one row of numbers, as points with their intervals."""
    mean, low, high = (np.atleast_1d(summary[f"{metric}{suffix}"].values) for suffix in ("", "_low", "_high"))
    figure = Figure(figsize=(2.2 + 0.5 * len(mean), 2.8), layout="constrained")
    axes = figure.add_subplot()
    spread = np.abs(np.stack([mean - low, high - mean]))
    axes.errorbar(
        range(len(mean)),
        mean,
        yerr=spread,
        fmt="o",
        color=BLUE,
        ecolor=BLUE,
        elinewidth=1.5,
        markersize=5,
        clip_on=False,
    )
    if summary[metric].dims:
        _name_axis(axes, "x", summary[str(summary[metric].dims[0])])
    else:
        axes.set_xticks([])
    axes.set_xlim(-0.6, len(mean) - 0.4)
    if metric in FRACTIONS:
        set_fraction_axis(axes)
    axes.set_ylabel(METRIC_NAMES.get(metric, metric))
    axes.set_title(title, loc="left", fontsize=9, color=INK)
    return figure


def _figure_steps(summary: xr.Dataset, metric: str, title: str) -> Figure:
    others = [str(dim) for dim in summary[metric].dims if dim != "step"]
    steps = summary.step.values
    figure = Figure(figsize=(6.4, 3.0), layout="constrained")
    axes = figure.add_subplot()
    if not others:
        axes.fill_between(steps, summary[f"{metric}_low"], summary[f"{metric}_high"], color=BLUE, alpha=0.18, lw=0)
        axes.plot(steps, summary[metric], color=BLUE, marker="o", markersize=3, clip_on=False)
        set_step_axis(axes, steps)
        if metric in FRACTIONS:
            set_fraction_axis(axes)
        axes.set_ylabel(METRIC_NAMES.get(metric, metric))
    else:
        rows = best_layer(summary[metric])  # [step, cell]
        figure.set_size_inches(2.4 + 0.32 * len(steps), 1.4 + 0.26 * rows.shape[1])
        draw_heat_map(axes, rows.values.T, metric)
        _name_axis(axes, "y", rows[str(rows.dims[1])])
        axes.set_xticks(range(len(steps)), [format_step(step) for step in steps], rotation=60)
        axes.set_xlabel("training step")
        if "layer" in others and others != ["layer"] and "head" not in others:
            title = f"{title}; best layer"
    axes.set_title(title, loc="left", fontsize=9, color=INK)
    return figure


def best_layer(values: xr.DataArray) -> xr.DataArray:
    """One row a position (the largest over layers), or a head: ``[step, position]``, ``[step, head]`` as ``L2.H1``."""
    if "head" in values.dims:
        flat = values.stack(cell=("layer", "head"))
        names = [f"L{layer}.H{head}" for layer, head in flat.cell.values]
        return xr.DataArray(
            flat.transpose("step", "cell").values, {"step": values.step, "head": names}, ("step", "head")
        )
    if values.dims[1:] == ("layer",):
        return values
    return values.max("layer").transpose("step", ...)
