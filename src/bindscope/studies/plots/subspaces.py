"""Figures of what the residual stream holds: subspaces beside their controls, sweeps, probes, projections over training."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.plots.heat_map import add_colour_bar, draw_cells
from bindscope.studies.plots.style import (
    BLUE,
    GREY,
    INK,
    MUTED,
    format_fraction,
    new_figure,
    ordered_colours,
    set_fraction_axis,
)

MOST_PANELS = 8  # checkpoints drawn beside each other
MOST_TICKS = 24
MOST_NAMED = 12  # groups that a legend names


def figure_subspace(dataset: xr.Dataset) -> Figure:
    """Swap success of a subspace and of each control, with 95 % intervals, from ``measure_subspace``."""
    conditions = [str(name) for name in dataset.condition.values]
    fraction = dataset.success_fraction.values
    reach = np.stack([fraction - dataset.success_low.values, dataset.success_high.values - fraction]).clip(0)
    with new_figure(6.4, 3.4) as figure:
        axes = figure.add_subplot()
        colours = [BLUE if name == "found" else GREY for name in conditions]
        axes.bar(range(len(conditions)), fraction, color=colours, width=0.65)
        axes.errorbar(range(len(conditions)), fraction, reach, fmt="none", ecolor=INK, elinewidth=1, capsize=3)
        for index, value in enumerate(fraction):
            text = format_fraction(float(value))
            axes.annotate(text, (index, reach[1][index] + value), (0, 3), textcoords="offset points", ha="center",
                          fontsize=8, color=INK)  # fmt: skip
        axes.set_xticks(range(len(conditions)), [name.replace(" ", "\n") for name in conditions])
        axes.grid(False, axis="x")
        set_fraction_axis(axes)
        axes.set_ylim(0, 1.12)
        axes.set_ylabel("counterfactual answer")
        _title(axes, f"Swapping {dataset.attrs['rank']} dimensions for {dataset.attrs['of']}", _describe(dataset))
    return figure


def figure_sweep(dataset: xr.Dataset) -> Figure:
    """Swap success of the found subspace and of the whole residual stream at every layer and position."""
    with new_figure(9.0, 0.9 + 0.28 * dataset.sizes["position"]) as figure:
        words = {"found": f"{dataset.attrs['rank']} dimensions", "whole_stream": "the whole stream"}
        for index, (name, title) in enumerate(words.items()):
            axes = figure.add_subplot(1, 2, index + 1)
            cells = dataset[name].transpose("position", "layer").values
            _heat(axes, cells, [str(p) for p in dataset.position.values], [str(k) for k in dataset.layer.values])
            axes.invert_yaxis()
            axes.set_xlabel("layer")
            _title(axes, f"Swapping {title}", f"{dataset.attrs['of']}, counterfactual answers; empty: not looked for")
    return figure


def figure_probes(dataset: xr.Dataset) -> Figure:
    """Probe accuracy at every layer and position, trained above untrained."""
    probe = dataset.isel(probe=0)
    with new_figure(9.0, 4.2) as figure:
        for index, condition in enumerate(("trained", "untrained model")):
            axes = figure.add_subplot(2, 1, index + 1)
            cells = probe.accuracy.sel(condition=condition).values
            _heat(axes, cells, [str(k) for k in dataset.layer.values], [str(p) for p in dataset.position.values])
            axes.set_ylabel("layer")
            axes.set_xlabel("position")
            rule = format_fraction(float(dataset.line_1_accuracy))
            _title(
                axes,
                f"Values read off single positions: {condition}",
                f"{probe.probe.item()} probes, variables right; saying line 1's constant for all of them: {rule}",
            )
    return figure


def figure_projections(dataset: xr.Dataset, colour: str = "value") -> Figure:
    """Points of the residual stream at some checkpoints along the first two axes; says whether the axes are frozen.

    Panels share their scale when the axes are frozen, and have each their own when they are refitted.
    """
    n_steps = dataset.sizes["step"]
    shown = np.unique(np.linspace(0, n_steps - 1, min(MOST_PANELS, n_steps)).round().astype(int))
    n_columns = min(4, len(shown))
    n_rows = -(-len(shown) // n_columns)
    frozen = str(dataset.attrs["axes"]).startswith("frozen")
    with new_figure(2.5 * n_columns, 1.0 + 2.5 * n_rows) as figure:
        panels = figure.subplots(n_rows, n_columns, sharex=frozen, sharey=frozen, squeeze=False).ravel()
        for axes, position in zip(panels, shown):
            _scatter(axes, dataset.coordinate.isel(step=position).values, dataset[colour].values)
            axes.set_title(f"step {int(dataset.step.values[position]):,}", fontsize=8.5, color=MUTED)
        for axes in panels[len(shown) :]:
            axes.set_visible(False)
        handles, labels = panels[0].get_legend_handles_labels()
        if len(labels) <= MOST_NAMED:
            figure.legend(handles, labels, loc="outside lower left", ncols=len(labels), handletextpad=0.1)
        where = f"layer {dataset.attrs['layer']}, {dataset.attrs['position']}, {dataset.attrs['inside']}"
        title = f"Axes {dataset.attrs['axes']} · {where} · coloured by {colour.replace('_', ' ')}"
        figure.suptitle(title, fontsize=9, color=INK, x=0.01, ha="left")
    return figure


def _scatter(axes: Axes, points: np.ndarray, labels: np.ndarray) -> None:
    """Points [point, axis] along the first two axes, one colour a label."""
    groups = np.unique(labels)
    for group, shade in zip(groups, ordered_colours(len(groups))):
        here = points[labels == group]
        axes.scatter(here[:, 0], here[:, min(1, points.shape[1] - 1)], s=7, color=shade, linewidths=0, label=str(group))
    axes.set_xticks([])
    axes.set_yticks([])


def _describe(dataset: xr.Dataset) -> str:
    attrs = dataset.attrs
    return (
        f"{attrs['method']}, layer {attrs['layer']}, {attrs['position']}, {attrs['n_test_pairs']} pairs, 95 % intervals"
    )


def _title(axes: Axes, title: str, subtitle: str) -> None:
    axes.set_title(f"{title}\n", loc="left", fontsize=10, fontweight="bold", color=INK)
    axes.text(0, 1.02, subtitle, transform=axes.transAxes, fontsize=8, color=MUTED, va="bottom")


def _heat(axes: Axes, cells: np.ndarray, rows: list[str], columns: list[str]) -> None:
    """Fractions [row, column] as viridis from 0 to 100 %; missing ones stay empty."""
    mesh = draw_cells(axes, cells, limits=(0, 1))
    for axis, names in ((axes.xaxis, columns), (axes.yaxis, rows)):
        ticks = np.arange(0, len(names), -(-len(names) // MOST_TICKS))
        axis.set_ticks(ticks, [names[tick] for tick in ticks])
    add_colour_bar(axes, mesh, percent=True)
