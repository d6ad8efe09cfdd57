"""The figure of AA10: which parts carry the spikes, which variable jumps, and what the circuit cannot do without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from bindscope.studies.plots.heat_map import add_colour_bar, draw_fraction_map
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    DASHES,
    GREY,
    MUTED,
    ORANGE,
    new_figure,
    plot_interval,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)

EXTRA = ("jump", "undone", "random")  # beside the splits: all that jump together, the other way round, the control


def draw_spikes(results: Mapping[str, xr.Dataset]) -> Figure:
    """A heat map of parts and splits for each spike; below, accuracy by variable, where = attends, and ablations."""
    transplants, by_variable, ablations = (results[name] for name in ("transplants", "by_variable", "part_ablations"))
    n_spikes, n_parts = min(2, transplants.sizes["spike"]), transplants.sizes["part"]
    with new_figure(12.4, 2.6 + 0.19 * n_parts + 3.6) as figure:
        heights = [0.2, 0.8 + 0.19 * n_parts, 3.6]
        parts: Any = figure.subfigures(3, 1, height_ratios=heights)
        top, bottom = parts[1:]  # the first holds the title
        panels = top.subplots(1, n_spikes, sharey=True, squeeze=False)[0]
        for axes, spike in zip(panels, transplants.spike.values[:n_spikes]):
            mesh = _draw_fractions(axes, transplants.sel(spike=spike))
        add_colour_bar(list(panels), mesh, percent=True)
        left, middle, right = bottom.subplots(1, 3, width_ratios=[1, 0.85, 1.25])
        _draw_variables(left, by_variable, transplants)
        _draw_looks(middle, by_variable, transplants)
        _draw_ablations(right, ablations)
        run, n = transplants.attrs.get("run", ""), int(transplants.attrs.get("n", 0))
        subtitle = (
            f"{run} · fraction of the jump that follows a part from the later into the earlier model, n = {n} a split"
        )
        title_figure(figure, "AA10 · What the spikes are", subtitle)
    return figure


def _draw_fractions(axes: Axes, spike: xr.Dataset) -> QuadMesh:
    splits = [str(split) for split in spike.split.values]
    there, back = spike.sel(direction="reproduce"), spike.sel(direction="undo")
    columns = [there.fraction.transpose("part", "split").values, there.total_fraction.values[:, None]]
    columns += [back.total_fraction.values[:, None], spike.random_fraction.values[:, None]]
    parts = [str(part) for part in spike.part.values]
    mesh = draw_fraction_map(axes, np.concatenate(columns, 1), parts, [*splits, *EXTRA], font_size=6, written=True)
    axes.axvline(len(splits) - 0.5, color=ORANGE, linewidth=1.2)
    axes.set_title(
        f"spike {int(spike.spike)}, {int(spike.before_step):,} → {int(spike.after_step):,}; its variable: "
        f"{spike.focus_variable.values}, as {spike.focus_operand.values} operand",
        fontsize=9,
        loc="left",
        color=MUTED,
    )
    axes.tick_params(axis="y", labelsize=7)
    axes.tick_params(axis="x", labelsize=7, rotation=40)
    return mesh


def _draw_variables(axes: Axes, dataset: xr.Dataset, transplants: xr.Dataset) -> None:
    """One line for each variable in an operand position that training never shows, and the range of all others."""
    steps, restricted = dataset.step.values, dataset.restricted.values.astype(bool)  # [variable, operand]
    set_step_axis(axes, steps, "linear")
    _mark(axes, transplants)
    others = dataset.accuracy.values[:, ~restricted]  # [step, other]
    axes.fill_between(
        steps, others.min(1), others.max(1), color=GREY, alpha=0.2, linewidth=0, label="shown in training"
    )
    for index, (variable, operand) in enumerate(np.argwhere(restricted)):
        cell = dataset.isel(variable=variable, operand=operand)
        colour = CATEGORIES[index % len(CATEGORIES)]
        label, dash = (
            f"{dataset.variable.values[variable]} {dataset.operand.values[operand]}",
            DASHES[index % len(DASHES)],
        )
        plot_interval(axes, steps, cell, "accuracy", colour, alpha=0.15, linestyle=dash, label=label)
    set_fraction_axis(axes)
    axes.set_title("accuracy, one variable, by operand", fontsize=9, loc="left", color=MUTED, pad=28)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.98), ncols=3, fontsize=7, columnspacing=1, handlelength=1.5)


def _draw_looks(axes: Axes, dataset: xr.Dataset, transplants: xr.Dataset) -> None:
    steps = dataset.step.values
    set_step_axis(axes, steps, "linear")
    _mark(axes, transplants)
    for position, colour in zip(dataset.position.values, (BLUE, ORANGE)):
        axes.plot(steps, dataset.operand_attention.sel(position=position), color=colour, label=f"position {position}")
    set_fraction_axis(axes)
    axes.set_title("layer 1, attention of = to the operands", fontsize=9, loc="left", color=MUTED, pad=28)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 0.98), ncols=2, fontsize=7, columnspacing=1, handlelength=1.5)


def _draw_ablations(axes: Axes, dataset: xr.Dataset) -> None:
    cells = dataset.accuracy.sel(kind="zero").transpose("part", "split").values
    names = [f"{part} (control)" if control else str(part) for part, control in zip(dataset.part.values, dataset.control.values)]  # fmt: skip
    draw_fraction_map(axes, cells, names, [str(split) for split in dataset.split.values], font_size=6)
    axes.tick_params(axis="both", labelsize=7)
    step = int(dataset.attrs.get("step", 0))
    axes.set_title(f"accuracy at step {step:,} without", fontsize=9, loc="left", color=MUTED)


def _mark(axes: Axes, transplants: xr.Dataset) -> None:
    for before, after in zip(transplants.before_step.values, transplants.after_step.values):
        axes.axvspan(int(before), int(after), color=ORANGE, alpha=0.25, linewidth=0.8)
