"""Figures of VB6, VB7 and VB11: what the residual stream holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.binding.published import PROBED_VALUES, SWAP_SUCCESS
from bindscope.studies.plots.heat_map import add_colour_bar, draw_fraction_map
from bindscope.studies.plots.style import (
    BLUE,
    DASHES,
    GREY,
    INK,
    MUTED,
    ORANGE,
    label_rows,
    new_figure,
    place_legend_above,
    plot_interval,
    set_fraction_axis,
    set_fraction_ticks,
    title_figure,
)

FOUND = ("found", "whole stream")  # drawn in blue; all others are controls
CANDIDATE_STYLES = {"answer": (BLUE, DASHES[0]), "line 1": (ORANGE, DASHES[1]), "others": (GREY, DASHES[2])}


def draw_subspaces(results: Mapping[str, xr.Dataset]) -> Figure:
    """Patching success inside each subspace beside its controls."""
    dataset = results["subspaces"]
    conditions = [str(name) for name in dataset.condition.values]
    with new_figure(9.2, 3.3) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, quality in zip(panels, ("values", "names")):
            cell = dataset.sel(quality=quality)
            fraction, low, high = (cell[name].values for name in ("success_fraction", "success_low", "success_high"))
            colours = [BLUE if name in FOUND else GREY for name in conditions]
            _draw_bars(axes, conditions, fraction, low, high, colours)
            axes.axvline(SWAP_SUCCESS[quality], color=ORANGE, linewidth=1.4, linestyle=(0, (4, 2)))
            where = (
                f"{int(cell.search_rank)} dimensions at {cell.search_position.values}, layer {int(cell.search_layer)}"
            )
            axes.set_title(f"{quality}: {where}", fontsize=9, loc="left", color=MUTED)
            axes.set_xlabel("patching success")
        n = int(dataset.attrs["n_test"])
        subtitle = f"{dataset.attrs.get('run', '')} · n = {n} test pairs, 95 % intervals · dashed: the paper"
        title_figure(
            figure, "VB6 · Subspaces of values and of names", f"{subtitle} · without {dataset.attrs['excluded']}"
        )
    return figure


def draw_retention(results: Mapping[str, xr.Dataset]) -> Figure:
    """What is answered without answer heads and without heuristic heads, and the logit lens of the last checkpoint."""
    dataset, lens = results["retention"], results["lens"]
    after = dataset.sel(step=int(dataset.attrs["after"]))
    with new_figure(11, 3.4) as figure:
        panels = figure.subplots(1, 3, width_ratios=[1, 1, 0.9])
        for axes, group in zip(panels, after.group.values):
            _draw_conditions(axes, after.sel(group=group))
            n = int(after.n.sel(group=group))
            axes.set_title(f"{group}, n = {n}", fontsize=9, loc="right", color=MUTED, pad=20)
        panels[1].set_yticklabels([])
        panels[0].legend(loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=3, columnspacing=1.0, handletextpad=0.4)
        _draw_lens(panels[2], lens.isel(step=-1))
        title = "VB7 · The heuristic under the answer heads"
        run, step = dataset.attrs.get("run", ""), int(dataset.attrs["after"])
        heads = f"answer heads {dataset.attrs['circuit']} · heuristic heads {dataset.attrs['heuristic']}"
        title_figure(figure, title, f"{run} at step {step:,} · {heads} · 95 % intervals, random: range of sets")
    return figure


def draw_probes(results: Mapping[str, xr.Dataset]) -> Figure:
    """Fraction of the variables' values that a linear probe reads, over layer and position, and the best of each layer."""
    dataset = results["probes"]
    with new_figure(10.6, 3.3) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[2.2, 1])
        cells = dataset.late_accuracy.sel(condition="trained").transpose("layer", "position").values
        mesh = draw_fraction_map(left, cells, dataset.layer.values, dataset.position.values, written=False)
        _label_positions(left, [str(name) for name in dataset.position_name.values])
        left.set_ylabel("stream entering layer")
        left.set_title("values with roots from line 3 on", fontsize=9, loc="left", color=MUTED)
        add_colour_bar(left, mesh, percent=True)
        for index, (name, condition, colour, label) in enumerate(
            (
                ("accuracy", "trained", BLUE, "all values"),
                ("late_accuracy", "trained", ORANGE, "later roots"),
                ("state", "trained", INK, "whole state"),
                ("accuracy", "shuffled labels", GREY, "shuffled"),
            )
        ):
            best = dataset[name].sel(condition=condition).max("position").values  # [layer]
            right.plot(
                dataset.layer.values, best, color=colour, linestyle=DASHES[index], marker="o", markersize=3, label=label
            )
        right.axhline(PROBED_VALUES, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
        where = right.get_yaxis_transform()
        right.text(1, PROBED_VALUES, "paper, values", transform=where, fontsize=7, ha="right", va="bottom")
        right.set_xticks(dataset.layer.values)
        right.set_xlabel("layer, best position")
        set_fraction_axis(right)
        right.legend(loc="lower left", bbox_to_anchor=(-0.04, 0.99), ncols=2, columnspacing=1.0, fontsize=7.5)
        n = int(dataset.attrs["n_test"])
        subtitle = (
            f"{dataset.attrs.get('run', '')} · linear probes fitted on {int(dataset.attrs['n_fit']):,}, tested on {n:,}"
        )
        title_figure(figure, "VB11 · What a single position tells", f"{subtitle} programs")
    return figure


def _draw_bars(
    axes: Axes, names: Sequence[str], fraction: np.ndarray, low: np.ndarray, high: np.ndarray, colours: Sequence[str]
) -> None:
    indices = range(len(names))
    axes.barh(indices, fraction, color=list(colours), height=0.62)
    axes.hlines(indices, low, high, color=INK, linewidth=1.2)
    for index, value, end in zip(indices, fraction, high):
        axes.text(max(value, end) + 0.02, index, f"{100 * value:.0f} %", va="center", fontsize=8)
    label_rows(axes, names)
    axes.set_xlim(0, 1.16)
    set_fraction_ticks(axes.xaxis)


def _draw_conditions(axes: Axes, cells: xr.Dataset) -> None:
    """Three fractions for each set of heads that was taken away."""
    names = [str(name).replace("circuit", "answer heads") for name in cells.condition.values]
    indices = np.arange(len(names))
    series = (("accuracy", BLUE, "right"), ("line_1", ORANGE, "line 1's"), ("most_recent", GREY, "last constant"))
    for index, (name, colour, label) in enumerate(series):
        at = indices + 0.26 * (index - 1)
        axes.barh(at, cells[name].values, color=colour, height=0.24, label=label)
        axes.hlines(at, cells[f"{name}_low"].values, cells[f"{name}_high"].values, color=INK, linewidth=1)
    label_rows(axes, names)
    axes.set_xlim(0, 1.02)
    set_fraction_ticks(axes.xaxis)
    axes.set_xlabel("answers")


def _draw_lens(axes: Axes, lens: xr.Dataset) -> None:
    layers = lens["layer"].values
    for candidate, (colour, dash) in CANDIDATE_STYLES.items():
        cell = lens.sel(candidate=candidate)
        plot_interval(axes, layers, cell, "logit", colour, linestyle=dash, label=candidate)
    axes.set_xticks(layers)
    axes.set_xlabel("after layers")
    axes.set_ylabel("logit")
    place_legend_above(axes)
    axes.set_title(f"logit lens, n = {int(lens.attrs['n'])}", fontsize=9, loc="right", color=MUTED, pad=20)


def _label_positions(axes: Axes, positions: Sequence[str]) -> None:
    """Ticks at the right-hand side of some lines, and at the query's parts."""
    rows = [index for index, position in enumerate(positions) if position.startswith("rhs")]
    shown = rows[:: max(1, len(rows) // 8)]
    names = {index: positions[index].removeprefix("rhs of ") for index in shown}
    names |= {index: position for index, position in enumerate(positions) if position == "colon"}
    axes.set_xticks(list(names), list(names.values()), rotation=50, ha="right", rotation_mode="anchor")
