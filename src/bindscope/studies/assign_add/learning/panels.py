"""The panels of a trajectory of sums: nine splits together and by kind, held-out sums by their swap, the loss, and marks of spikes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from bindscope.measures.arithmetic.spikes import Spike
from bindscope.studies.plots.curves import Panel, draw_splits, loss_panel, plot_values
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    DASHES,
    GREY,
    INK,
    ORANGE,
    place_legend_above,
    set_fraction_axis,
)

COUNT_COLOURS = {"0": GREY, "1": ORANGE, "2": BLUE}
NEAR = 0.03  # of an axis: numbers of spikes as near as this would stand on each other
COUNT_NAMES = {"0": "Two numbers", "1": "One variable", "2": "Two variables"}


def sums_panels(dataset: xr.Dataset) -> list[Panel]:
    """What is worth seeing of a run on modular addition."""
    counts = sorted({str(split)[0] for split in dataset.split.values})
    together = Panel(
        "accuracy",
        "All splits",
        "right answers; first digit: how many operands are variables; bands: spikes",
        lambda axes: _draw_together(axes, dataset),
    )
    by_count = [
        Panel(
            f"variables-{count}",
            COUNT_NAMES.get(count, f"{count} variables"),
            "right answers by what is new about the sums, 95 % interval",
            partial(
                draw_splits, dataset=dataset, splits=[split for split in dataset.split.values if split[0] == count]
            ),
        )
        for count in counts
    ]
    halves = Panel(
        "swap",
        "Held-out sums, apart",
        "solid: other order trained on · dashed: held out in both orders",
        lambda axes: _draw_halves(axes, dataset),
    )
    known = bool(np.isfinite(dataset.half_accuracy).any())  # not where operands cannot be swapped
    return [together, *([halves] if known else []), *by_count, loss_panel(dataset)]


def _draw_together(axes: Axes, dataset: xr.Dataset) -> None:
    """Every split: its colour says how many variables, its dashes what is new."""
    drawn: dict[str, int] = {}
    for split in map(str, dataset.split.values):
        index = drawn[split[0]] = drawn.get(split[0], -1) + 1
        plot_values(
            axes,
            dataset,
            dataset.split_accuracy.sel(split=split).values,
            color=COUNT_COLOURS.get(split[0], CATEGORIES[2]),
            linestyle=DASHES[index % len(DASHES)],
            linewidth=1.4,
            label=split,
        )
    set_fraction_axis(axes)
    axes.legend(loc="lower right", ncols=3, handlelength=2.4, columnspacing=1.2, bbox_to_anchor=(1, 0.06))


def _draw_halves(axes: Axes, dataset: xr.Dataset) -> None:
    splits = [split for split in dataset.split.values if np.isfinite(dataset.half_accuracy.sel(split=split)).any()]
    for split, colour in zip(splits, CATEGORIES):
        for half, dash in zip(dataset.half.values, DASHES):
            values = dataset.half_accuracy.sel(split=split, half=half).values
            name = COUNT_NAMES.get(str(split)[0], str(split)).lower()
            label = name if half == dataset.half.values[0] else None
            plot_values(axes, dataset, values, color=colour, linestyle=dash, label=label)
    set_fraction_axis(axes)
    place_legend_above(axes)


def mark_spikes(axes: Axes, spikes: Sequence[Spike]) -> None:
    """A band over each spike's steps with its number at the foot of the panel, above that of a spike just before it."""
    first, last = axes.get_xlim()
    before, level = -np.inf, 0
    for spike in spikes:
        level = level + 1 if spike.after_step - before < NEAR * (last - first) else 0
        before = spike.after_step
        axes.axvspan(spike.before_step, spike.after_step, color=INK, alpha=0.16, linewidth=0.6, zorder=0)
        words, where = f" {spike.number}", axes.get_xaxis_transform()
        height = 0.02 + 0.07 * level
        axes.text(
            spike.after_step, height, words, transform=where, fontsize=8, fontweight="bold", color=INK, va="bottom"
        )
