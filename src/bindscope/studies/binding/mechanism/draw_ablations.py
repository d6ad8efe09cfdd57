"""The figure ``ablations``: how many more answers are wrong with one head mean-ablated, by depth and by hop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from bindscope.measures.binding.hops import ANYWHERE, accuracy_drops, find_costliest
from bindscope.studies.plots.heat_map import MOST_WRITTEN, add_colour_bar, draw_cells, write_cells
from bindscope.studies.plots.style import (
    BLUE,
    MUTED,
    new_figure,
    title_figure,
)

LEAST_REACH = 20  # points: the colours reach at least this far, so that noise of a few answers stays dark
WRITTEN_FROM = 0.5  # a drop that rounds to 1 point is written, a smaller one is not


def draw_ablations(results: Mapping[str, xr.Dataset]) -> Figure:
    """Above, each head ablated everywhere, a map for each depth and their means; below, at one position of the deepest
    chains alone; on the right, the head that costs most at each."""
    dataset = results["hops"]
    drops = 100 * accuracy_drops(dataset)
    depths = [int(depth) for depth in dataset.depth.values]
    positions = [str(position) for position in dataset.ablated_at.values if position != ANYWHERE]
    reach = max(LEAST_REACH, float(drops.max()))
    n_columns = max(len(depths) + 1, len(positions))
    height = 2.4 + 0.44 * max(dataset.sizes["layer"], 5)
    with new_figure(1.35 * n_columns + 4.4, height) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=[1.35 * n_columns, 4.0])  # type: ignore[misc]
        panels = left.subplots(2, n_columns, squeeze=False)
        for axes, depth in zip(panels[0], depths):
            mesh = _draw_heads(axes, drops.sel(ablated_at=ANYWHERE, depth=depth), reach, f"depth {depth}")
        _draw_means(panels[0, len(depths)], dataset)
        for axes, position in zip(panels[1], positions):
            _draw_heads(axes, drops.sel(ablated_at=position, depth=depths[-1]), reach, f"at {position}")
        for axes in (*panels[0, len(depths) + 1 :], *panels[1, len(positions) :]):
            axes.set_visible(False)
        for axes, words in zip(panels[:, 0], ("everywhere", f"one position, depth {depths[-1]}")):
            axes.set_ylabel(f"{words}\nlayer")
        _draw_costliest(right, drops, reach)
        add_colour_bar(list(panels.flat), mesh, "accuracy lost, in points", fraction=0.03)
        title_figure(figure, "Answers that fall without a head, by depth and by hop\n", _describe(dataset))
    return figure


def _draw_heads(axes: Axes, drops: xr.DataArray, reach: float, title: str) -> QuadMesh:
    cells = drops.values
    mesh = draw_cells(axes, cells, rows=drops["layer"].values, columns=drops["head"].values, limits=(0, reach), top_down=True)  # fmt: skip
    if cells.size <= MOST_WRITTEN:
        write_cells(axes, mesh, cells, _points, 6)
    axes.set_title(title, fontsize=9, color=MUTED)
    axes.set_xlabel("head")
    axes.tick_params(labelsize=7)
    return mesh


def _points(drop: float) -> str:
    return f"{drop:.0f}" if drop >= WRITTEN_FROM else ""


def _draw_means(axes: Axes, dataset: xr.Dataset) -> None:
    """The mean over heads by depth, which VB4 reports, with its bootstrap interval."""
    depths = dataset.depth.values
    low, mean, high = (100 * dataset[name].values for name in ("drop_low", "drop", "drop_high"))
    ends = [mean - low, high - mean]
    axes.errorbar(depths, mean, np.maximum(ends, 0), fmt="o-", color=BLUE, markersize=4, capsize=2, linewidth=1.2)
    axes.set_xticks(depths)
    axes.set_xlim(depths[0] - 0.5, depths[-1] + 0.5)
    axes.set_ylim(bottom=min(0.0, float(low.min())))
    axes.tick_params(labelsize=7)
    axes.set_title("mean over heads", fontsize=9, color=MUTED)
    axes.set_xlabel("depth")


def _draw_costliest(figure: Any, drops: xr.DataArray, reach: float) -> None:
    most, names = find_costliest(drops)
    axes = figure.subplots()
    mesh = draw_cells(axes, most.values, rows=["everywhere", *most.ablated_at.values[1:]], columns=most.depth.values, limits=(0, reach), top_down=True)  # fmt: skip
    labels = iter(names.values[np.isfinite(most.values)])
    write_cells(axes, mesh, most.values, lambda drop: f"{drop:.0f}\n{next(labels)}", 8)
    axes.set_title("the head that costs most, by itself", fontsize=9, color=MUTED)
    axes.set_xlabel("depth; empty: the chain has no such position")
    axes.set_ylabel("ablated at")


def _describe(dataset: xr.Dataset) -> str:
    n = dataset.n.sel(ablated_at=ANYWHERE).isel(layer=0, head=0).values.astype(int)
    where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}"
    return (
        f"{where} · each head in turn gives its mean over programs · n = {', '.join(map(str, n))} by depth · "
        f"without {dataset.attrs['excluded']}"
    )
