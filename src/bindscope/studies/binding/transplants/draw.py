"""Figures of transplants across the end of the plateau: what each part carries, and when each cell leaves."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.binding.transplants.tell import tell_retraining, tell_transplants
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    GREY,
    MUTED,
    ORANGE,
    label_rows,
    new_figure,
    set_fraction_ticks,
    title_figure,
)

MARKS = {"trained": (BLUE, "o"), "frozen": (CATEGORIES[2], "s"), "random": (GREY, "x"), "held": (ORANGE, "^")}
WORDS = {
    "trained": "given, trained on",
    "frozen": "given, frozen",
    "random": "changed at random, trained on",
    "held": "held as it was, all else trained",
}


def draw_transplants(results: Mapping[str, xr.Dataset]) -> Figure:
    """A panel for each donor: the way that each part carries, there and back, beside changes at random."""
    dataset = results["transplants"]
    with new_figure(10.6, 1.8 + 0.24 * dataset.sizes["part"]) as figure:
        panels = figure.subplots(1, dataset.sizes["donor"], sharey=True, squeeze=False)[0]
        for axes, donor in zip(panels, dataset.donor.values):
            _draw_donor(axes, dataset.sel(donor=donor))
            axes.set_title(f"donor: step {int(donor):,}", fontsize=9, loc="left", color=MUTED)
        panels[0].legend(fontsize=7, loc="center right")
        label_rows(panels[0], [str(part) for part in dataset.part.values])
        where = f"{dataset.attrs.get('run', '')} · receiver: step {int(dataset.attrs['receiver']):,}"
        subtitle = f"{where}, {int(dataset.attrs['n'])} programs\n{fill(tell_transplants(dataset), 130)}"
        _title(figure, "Which part makes a model on the plateau follow chains", subtitle)
    return figure


def draw_retraining(results: Mapping[str, xr.Dataset]) -> Figure:
    """The cells of a saved result."""
    return draw_cells(results["retraining"])


def draw_cells(dataset: xr.Dataset) -> Figure:
    """A row for each part: the steps after which each cell leaves the plateau, one mark for each order of the data."""
    most, every = int(dataset.attrs["most_steps"]), int(dataset.attrs["every"])
    rows = np.arange(dataset.sizes["part"])
    with new_figure(8.6, 1.9 + 0.5 * len(rows)) as figure:
        axes = figure.subplots()
        for step in dataset.baseline_left.fillna(most + every).values:
            axes.axvline(step, color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
        for offset, (condition, (colour, marker)) in zip((-0.27, -0.09, 0.09, 0.27), MARKS.items()):
            for seed in range(dataset.sizes["seed"]):
                left = dataset.left.sel(condition=condition).isel(seed=seed).fillna(most + every)
                axes.plot(
                    left,
                    rows + offset,
                    marker,
                    color=colour,
                    markersize=5,
                    label=WORDS[condition] if not seed else None,
                )
        label_rows(axes, [str(part) for part in dataset.part.values])
        axes.set_xlim(-every, most + 2 * every)
        axes.set_xlabel(f"steps until the plateau is left (rightmost: not within {most}; dashed: without any part)")
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
        about = f"{dataset.attrs.get('run', '')} · step {int(dataset.attrs['receiver']):,} with parts of step {int(dataset.attrs['donor']):,}"
        subtitle = f"{about}, {dataset.sizes['seed']} order{'s' * (dataset.sizes['seed'] > 1)} of the data\n{fill(tell_retraining(dataset), 110)}"
        _title(figure, "Given early and trained on: when is the plateau left?", subtitle)
    return figure


def _title(figure: Figure, title: str, subtitle: str) -> None:
    """Above the panels, with room for every line below the title."""
    title_figure(figure, title + "\n" * (1 + subtitle.count("\n")), subtitle)


def _draw_donor(axes: Axes, dataset: xr.Dataset) -> None:
    rows = np.arange(dataset.sizes["part"])
    axes.axvline(0, color=MUTED, linewidth=0.7)
    axes.axvline(1, color=MUTED, linewidth=0.7, linestyle=(0, (4, 2)))
    for draw in dataset.draw.values:
        axes.plot(
            dataset.random_fraction.sel(draw=draw), rows, "|", color=GREY, markersize=7,
            label="changed at random" if draw == dataset.draw.values[0] else None,
        )  # fmt: skip
    for offset, (direction, colour, words) in zip(
        (-0.15, 0.15), (("reproduce", BLUE, "into the receiver"), ("undo", ORANGE, "the receiver's into the donor"))
    ):
        one = dataset.sel(direction=direction)
        ends = [one.total_fraction - one.total_fraction_low, one.total_fraction_high - one.total_fraction]
        spread = np.maximum(np.array([end.values for end in ends]), 0)
        axes.errorbar(
            one.total_fraction,
            rows + offset,
            xerr=spread,
            fmt="o",
            color=colour,
            markersize=4,
            linewidth=1,
            label=words,
        )
    axes.set_xlabel("of the way on misleading programs")
    set_fraction_ticks(axes.xaxis)
