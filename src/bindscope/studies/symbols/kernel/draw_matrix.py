"""Figures of the kernel: N of templates and its eigenvalues, random features that tend to it, ridge regression with it."""

from __future__ import annotations

import textwrap

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from bindscope.studies.plots.heat_map import add_colour_bar, draw_cells, write_cells
from bindscope.studies.plots.style import BLUE, DASHES, GREY, MUTED, ORANGE, name_ticks, new_figure, title_figure

WRITE_BELOW = 8  # templates up to which each entry of N shows its number
NAME_BELOW = 40  # … and up to which templates are named
LONGEST_BELOW = 10  # a template of more characters is named on one side only
ROUNDING = 1e-12  # eigenvalues below this fraction of the largest are not told from 0


def draw_kernel(dataset: xr.Dataset) -> Figure:
    """N as a heat map, its eigenvalues with 95 % intervals, and the direction that is hardest to learn."""
    with new_figure(11.0, 3.9) as figure:
        matrix, values, direction = figure.subplots(1, 3, width_ratios=[1.15, 0.9, 0.95])
        _draw_matrix(matrix, dataset)
        _draw_eigenvalues(values, dataset)
        _draw_direction(direction, dataset)
        about = f"{dataset.attrs['verdict']}: {dataset.attrs['why']}"
        title_figure(
            figure, f"The kernel of templates · {_describe(dataset)}", textwrap.shorten(about, 170, placeholder=" …")
        )
    return figure


def draw_ridge(dataset: xr.Dataset) -> Figure:
    """The error of kernel ridge regression on fresh symbols over n, beside that of template means."""
    n, errors = dataset.n.values, dataset.test_error
    with new_figure(5.6, 3.9) as figure:
        axes = figure.subplots()
        axes.fill_between(n, errors.min("seed"), errors.max("seed"), color=BLUE, alpha=0.2, lw=0)
        axes.plot(n, errors.mean("seed"), "o-", color=BLUE, ms=3.5, label="kernel ridge regression, fresh symbols")
        axes.plot(n, dataset.means_error.mean("seed"), color=ORANGE, ls=DASHES[1], label="from template means")
        axes.axhline(0.5 * float((dataset.label**2).mean()), color=MUTED, lw=0.8, ls=DASHES[2])
        axes.set_xscale("log")
        name_ticks(axes.xaxis, n.tolist())
        axes.set_ylim(0, None)
        axes.set_xlabel("training sequences n")
        axes.set_ylabel("mean square error")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 0.02))
        names = list(map(str, dataset.template.values))
        shown = " ".join(names) if len(names) <= 4 else f"{len(names)} templates"
        subtitle = f"{shown}; {dataset.sizes['seed']} training sets, band: their range; {_describe(dataset)}"
        title_figure(figure, "Ridge regression on symbols never seen", subtitle)
    return figure


def _draw_matrix(axes: Axes, dataset: xr.Dataset) -> None:
    cells = dataset.kernel.values
    mesh = draw_cells(axes, cells, colours="cividis", top_down=True)
    axes.set_aspect("equal")
    add_colour_bar(axes, mesh)
    _name_positions(axes, dataset, both=True)
    if len(cells) <= WRITE_BELOW:
        write_cells(axes, mesh, cells, lambda value: f"{value:.4f}"[1:], 8 if len(cells) <= 4 else 6.5)
    _name(axes, "N, templates with fresh symbols")


def _draw_eigenvalues(axes: Axes, dataset: xr.Dataset) -> None:
    """Each eigenvalue with its interval; what cannot be told from 0 stands at the foot of the axis."""
    values, low, high = (dataset[f"eigenvalue_{name}"].values for name in ("value", "low", "high"))
    largest = values.max() if values.max() > 0 else 1.0
    told = low[low > ROUNDING * largest]
    foot = 10 ** np.floor(np.log10(told.min(initial=largest) / 3)) / (1 if len(told) == len(low) else 1e3)
    order = np.arange(len(values))
    shown, bottom, top = (np.maximum(array, foot) for array in (values, low, high))
    colours = [ORANGE if index == 0 else BLUE for index in order]
    axes.vlines(
        order, bottom, np.maximum(top, bottom * 1.02), color=colours, lw=4 if len(values) < 20 else 2, alpha=0.35
    )
    axes.scatter(order, shown, s=18 if len(values) < 20 else 6, c=colours, zorder=3, clip_on=False)
    axes.set_yscale("log")
    axes.set_ylim(foot, largest * 3)
    axes.yaxis.set_minor_locator(NullLocator())
    if len(told) < len(low):
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: "0" if value <= foot else f"{value:.0e}"))
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.xaxis.set_major_locator(FixedLocator([0, len(values) - 1] if len(values) > 1 else [0]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda index, _: "smallest" if index == 0 else "largest"))
    _name(axes, "eigenvalues of N, 95 % intervals")


def _draw_direction(axes: Axes, dataset: xr.Dataset) -> None:
    """The eigenvector of the smallest eigenvalue: labels along it take the most sequences."""
    weights = dataset.eigenvector.isel(eigenvalue=0).values
    weights = weights * np.sign(weights[np.abs(weights).argmax()])
    axes.barh(
        np.arange(len(weights)), weights, color=[ORANGE if weight > 0 else GREY for weight in weights], height=0.7
    )
    axes.axvline(0, color=MUTED, lw=0.7)
    axes.set_ylim(len(weights) - 0.4, -0.6)
    axes.set_xlim(-1.02, 1.02)
    axes.grid(axis="y", visible=False)
    _name_positions(axes, dataset, both=False)
    _name(axes, "hardest direction: smallest eigenvector")


def _name_positions(axes: Axes, dataset: xr.Dataset, both: bool) -> None:
    names = [textwrap.shorten(str(name), 24, placeholder="…") for name in dataset.template.values]
    if len(names) > NAME_BELOW:
        names = [""] * len(names)
    size = 8 if len(names) <= 12 else 5
    axes.set_yticks(np.arange(len(names)), names, fontsize=size)
    if both and max(map(len, names)) <= LONGEST_BELOW:
        tall = max(map(len, names)) * len(names) > 24
        axes.set_xticks(np.arange(len(names)), names, fontsize=size, rotation=90 if tall else 0)
    elif both:
        axes.set_xticks([])


def _describe(dataset: xr.Dataset) -> str:
    about = dataset.attrs
    return f"β = {about['beta']:g}, γ = {about['gamma']:g}, φ = {about['activation']}"


def _name(axes: Axes, words: str) -> None:
    axes.set_title(words, fontsize=9, loc="left", color=MUTED)
