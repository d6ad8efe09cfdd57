"""Charts that experiments are drawn with: curves of runs, when each learned, and phases side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bindscope.studies.plots.style import (
    CATEGORIES,
    DASHES,
    GREY,
    INK,
    MUTED,
    PHASE_COLOURS,
    format_step,
    label_rows,
    new_figure,
    place_legend_above,
    set_fraction_axis,
    set_step_axis,
)


@dataclass(frozen=True)
class Chart:
    """One panel of an experiment's figure."""

    title: str
    subtitle: str
    draw: Callable[[Axes, xr.Dataset], None]
    width: float = 1.0  # beside the others


def draw_charts(dataset: xr.Dataset, charts: Sequence[Chart], height: float = 3.3) -> Figure:
    """The charts beside each other on one sheet, at most three in a row and four as two by two."""
    n_columns = 2 if len(charts) == 4 else min(3, len(charts))
    n_rows = -(-len(charts) // n_columns)
    with new_figure(4.4 * sum(chart.width for chart in charts[:n_columns]), height * n_rows) as figure:
        figure.get_layout_engine().set(h_pad=0.1, w_pad=0.12)  # type: ignore[union-attr, call-arg]
        grid = figure.add_gridspec(n_rows, n_columns, width_ratios=[chart.width for chart in charts[:n_columns]])
        for index, chart in enumerate(charts):
            axes = figure.add_subplot(grid[index // n_columns, index % n_columns])
            chart.draw(axes, dataset)
            axes.set_title(f"{chart.title}\n", loc="left", fontsize=10.5, fontweight="bold", pad=16)
            axes.text(0, 1.09, chart.subtitle, transform=axes.transAxes, fontsize=8, color=MUTED, va="bottom")
    return figure


def variant_colours(dataset: xr.Dataset) -> dict[str, str]:
    """A colour for each variant, the same in every chart of a figure."""
    return {str(name): CATEGORIES[index % len(CATEGORIES)] for index, name in enumerate(dataset.variant.values)}


def draw_fraction(variable: str) -> Callable[[Axes, xr.Dataset], None]:
    """A chart of a fraction over steps: a colour for each variant, a line for each seed."""

    def draw(axes: Axes, dataset: xr.Dataset) -> None:
        for index, (name, colour) in enumerate(variant_colours(dataset).items()):
            rows = dataset[variable].sel(variant=name)
            draw_seed_lines(axes, rows, colour, name, index)
        finish_step_axes(axes, dataset)

    return draw


def draw_seed_lines(
    axes: Axes, rows: xr.DataArray, colour: str, label: str, index: int = 0, over: str = "step"
) -> None:
    """One thin line for each seed of [seed, step]; the label is told once."""
    for seed in rows.seed.values:
        curve = rows.sel(seed=seed).dropna(over)
        if len(curve):
            axes.plot(
                curve[over], curve, color=colour, linestyle=DASHES[index % len(DASHES)], lw=1.3, alpha=0.85, label=label
            )
            label = "_"


def finish_step_axes(axes: Axes, dataset: xr.Dataset) -> None:
    """Fractions from 0 to 100 % over training steps, with a legend above."""
    set_fraction_axis(axes)
    set_step_axis(axes, dataset.step.values, "linear")
    place_legend_above(axes)


def draw_milestones(axes: Axes, dataset: xr.Dataset) -> None:
    """For each variant and seed when it left the plateau (ring) and had learned (disc); a cross where it never did."""
    end = float(dataset.last_step.max())
    names = [str(name) for name in dataset.variant.values]
    for row, name in enumerate(names):
        cells = dataset.sel(variant=name)
        known = [seed for seed in cells.seed.values if cells.last_step.sel(seed=seed).notnull()]
        for seed, offset in zip(known, spread_marks(len(known), 0.28, 0.7)):
            cell, y = cells.sel(seed=seed), row + offset
            left, learned = float(cell.left_plateau), float(cell.learned)
            axes.plot([0, learned if learned == learned else end], [y, y], color=GREY, lw=0.6, zorder=1)
            _mark(axes, left, y, "o", "none")
            _mark(axes, learned, y, "o", CATEGORIES[0])
            if learned != learned:
                axes.plot([1.05 * end], [y], marker="x", color=CATEGORIES[1], ms=5, mew=1.4, clip_on=False)
    label_rows(axes, names)
    axes.set_xlim(0, 1.09 * end)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: format_step(step)))
    axes.set_xlabel("training step", labelpad=2)


def draw_phases(axes: Axes, dataset: xr.Dataset) -> None:
    """A row for each run: a bar from the first to the last evaluation of each phase, with its median accuracy."""
    rows = [(str(name), int(seed)) for name in dataset.variant.values for seed in dataset.seed.values]
    rows = [row for row in rows if bool(dataset.last_step.sel(variant=row[0], seed=row[1]).notnull())]
    labels = []
    for y, (name, seed) in enumerate(rows):
        cell = dataset.sel(variant=name, seed=seed)
        for phase in dataset.phase.values:
            first, last = float(cell.phase_first_step.sel(phase=phase)), float(cell.phase_last_step.sel(phase=phase))
            if first == first:
                width = max(last - first, 20.0)
                axes.barh(y, width, left=first, height=0.62, color=PHASE_COLOURS[str(phase)], alpha=0.85)
                if width > 0.14 * float(dataset.last_step.max()):
                    text = f"{float(cell.phase_accuracy.sel(phase=phase)):.0%}".replace("%", " %")
                    axes.text(first + width / 2, y, text, ha="center", va="center", fontsize=7.5, color="white")
        labels.append(f"seed {seed}" if len(dataset.variant) == 1 else f"{name}, seed {seed}")
    label_rows(axes, labels)
    for phase, colour in PHASE_COLOURS.items():
        axes.barh(-5, 0, color=colour, alpha=0.85, label=phase)
    set_step_axis(axes, dataset.step.values, "linear")
    place_legend_above(axes)


def spread_marks(n: int, apart: float, most: float) -> np.ndarray:
    """How far above or below its row each of ``n`` marks stands: so far ``apart``, and ``most`` of the row together."""
    return (np.arange(n) - (n - 1) / 2) * min(apart, most / max(n, 1))


def _mark(axes: Axes, step: float, y: float, marker: str, fill: str) -> None:
    if step == step:
        axes.plot(
            [step], [y], marker=marker, ms=6, color=INK if fill == "none" else fill, markerfacecolor=fill, mew=1.2
        )
