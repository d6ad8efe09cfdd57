"""The figure of an experiment beyond the paper: when each kind of sum is learned, and how every split ends."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bindscope.studies.assign_add.experiments.conclude import KINDS, kind_learned
from bindscope.studies.plots.experiment_charts import (
    Chart,
    draw_charts,
    draw_seed_lines,
    finish_step_axes,
    spread_marks,
)
from bindscope.studies.plots.heat_map import draw_cells, write_cells
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    GREY,
    INK,
    ORANGE,
    format_step,
    label_rows,
    place_legend_above,
)

KIND_COLOURS = dict(zip(KINDS, (GREY, ORANGE, BLUE)))
MARKERS = dict(zip(KINDS, ("s", "D", "o")))
COLOURS = (*CATEGORIES, INK)
NEW = [split for kind in ("with held-out pairs", "in new positions") for split in KINDS[kind]]


def draw_options(dataset: xr.Dataset) -> Figure:
    return draw_charts(
        dataset,
        (
            Chart("When each kind is learned", "all its splits ≥ 90 %; a row a seed; cross: never", _draw_learned),
            Chart("Where every split ends", "right answers in %, mean of seeds", _draw_last),
            Chart("Sums that are new in any way", "the lowest of six splits; a line a seed", _draw_lowest),
        ),
        height=max(3.3, 0.8 + 0.42 * dataset.sizes["variant"]),
    )


def _draw_learned(axes: Axes, dataset: xr.Dataset) -> None:
    end = float(dataset.last_step.max())
    names = [str(name) for name in dataset.variant.values]
    for row, name in enumerate(names):
        cells = dataset.sel(variant=name)
        seeds = [seed for seed in cells.seed.values if bool(cells.last_step.sel(seed=seed).notnull())]
        for seed, offset in zip(seeds, spread_marks(len(seeds), 0.3, 0.7)):
            y = row + offset
            axes.plot([0, end], [y, y], color=GREY, lw=0.4, zorder=1)
            _mark_kinds(axes, cells.sel(seed=seed), y, end)
    for kind, colour in KIND_COLOURS.items():
        axes.plot([], [], marker=MARKERS[kind], ls="", color=colour, ms=5, label=kind)
    label_rows(axes, names)
    axes.set_xlim(0, 1.14 * end)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: format_step(step) if step <= end else ""))
    axes.set_xlabel("training step", labelpad=2)
    place_legend_above(axes)


def _mark_kinds(axes: Axes, cell: xr.Dataset, y: float, end: float) -> None:
    n_missed = 0
    for index, (kind, colour) in enumerate(KIND_COLOURS.items()):
        step = kind_learned(cell, kind)
        if np.isnan(step):
            axes.plot([end * (1.03 + 0.035 * n_missed)], [y], marker="x", color=colour, ms=4.5, mew=1.4, clip_on=False)
            n_missed += 1
        else:
            axes.plot([step], [y + 0.08 * (index - 1)], marker=MARKERS[kind], color=colour, ms=4.5, alpha=0.9)


def _draw_last(axes: Axes, dataset: xr.Dataset) -> None:
    last = dataset.last_accuracy.mean("seed").transpose("variant", "split")
    mesh = draw_cells(axes, last.values, rows=dataset.variant.values, columns=dataset.split.values, colours="Blues",
                      limits=(0, 1.25), top_down=True)  # fmt: skip
    write_cells(axes, mesh, last.values, lambda value: f"{np.floor(100 * value) if value < 1 else 100:.0f}", 8)
    axes.tick_params(axis="x", labelsize=6.3)


def _draw_lowest(axes: Axes, dataset: xr.Dataset) -> None:
    lowest = dataset.split_accuracy.sel(split=NEW).min("split")
    for index, name in enumerate(map(str, dataset.variant.values)):
        draw_seed_lines(axes, lowest.sel(variant=name), COLOURS[index % len(COLOURS)], name, index)
    finish_step_axes(axes, dataset)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7.5)
