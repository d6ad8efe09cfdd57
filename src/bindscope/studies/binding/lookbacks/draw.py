"""Figures of lookbacks: address, pointer and payload, layer by layer, through training and at one checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bindscope.measures.binding.phases import PHASES
from bindscope.studies.plots.over_training import shade_phases
from bindscope.studies.plots.style import (  # fmt: skip
    BLUE,
    CATEGORIES,
    GREY,
    MUTED,
    ORANGE,
    new_figure,
    ordered_colours,
    plot_interval,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)

PANELS: tuple[tuple[str, dict[str, str], str], ...] = (  # variable, what is chosen of it, in words
    ("binding", {"moved": "payload"}, "value: its digit alone came along"),
    ("binding", {"moved": "both"}, "value: digit and address"),
    ("source", {"frozen": "none"}, "names exchanged: answers follow"),
    ("source", {"frozen": "address"}, "the same, addresses frozen"),
    ("end", {"position": "end", "came": "pointer"}, "end: looked up in the base"),
    ("end", {"position": "end", "came": "payload"}, "end: the other value itself"),
)
COLOURS = {"pointer": BLUE, "address": BLUE, "payload": ORANGE, "both": CATEGORIES[2], "unchanged": GREY}


def draw_lookbacks(results: Mapping[str, xr.Dataset]) -> Figure:
    """A panel for each label, a curve for each layer, before the phases."""
    dataset = results["lookbacks"]
    colours = ordered_colours(dataset.sizes["layer"])
    with new_figure(11.4, 5.4) as figure:
        panels = figure.subplots(2, 3, sharey=True).T
        for axes, (name, chosen, words) in zip(panels.flat, PANELS):
            set_step_axis(axes, dataset.step.values)
            shade_phases(axes, results, PHASES)
            for layer, colour in enumerate(colours):
                axes.plot(dataset.step, dataset[name].sel({"layer": layer, **chosen}), color=colour, linewidth=1.4)
            set_fraction_axis(axes)
            axes.set_title(words, fontsize=8.5, loc="left", color=MUTED)
        keys = [Line2D([], [], color=colour, label=f"entering L{layer}") for layer, colour in enumerate(colours)]
        panels[0, 0].legend(handles=keys, fontsize=7, loc="upper left")
        subtitle = f"{dataset.attrs.get('run', '')} · fractions of answers, {int(dataset.attrs['n'])} pairs each"
        title_figure(figure, "Address, pointer and payload of a lookup\n", subtitle)
    return figure


def draw_checkpoint(dataset: xr.Dataset) -> Figure:
    """At one checkpoint, over the layers: what right-hand sides bring, what names do, and what the end brings."""
    with new_figure(10.6, 3.3) as figure:
        left, middle, right = figure.subplots(1, 3, sharey=True)
        for label in ("payload", "address", "both", "unchanged"):
            _draw(left, dataset.sel(moved=label), "binding", COLOURS[label], label)
        for frozen, colour in zip(dataset.frozen.values, (BLUE, ORANGE, CATEGORIES[2])):
            _draw(middle, dataset.sel(frozen=frozen), "source", colour, f"frozen: {frozen}")
        for label in ("pointer", "payload", "unchanged"):
            _draw(right, dataset.sel(position="end", came=label), "end", COLOURS[label], label)
        for axes, words in ((left, "right-hand sides"), (middle, "names exchanged"), (right, "the end")):
            axes.set_title(words, fontsize=9, loc="left", color=MUTED)
            axes.set_xlabel("entering layer")
            axes.set_xticks(dataset.layer.values)
            axes.legend(fontsize=7)
        set_fraction_axis(left)
        where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}"
        title_figure(
            figure, "Address, pointer and payload of a lookup\n", f"{where} · {int(dataset.attrs['n'])} pairs each"
        )
    return figure


def _draw(axes: Axes, dataset: xr.Dataset, name: str, colour: str, label: str) -> None:
    plot_interval(axes, dataset.layer.values, dataset, name, colour, label=label, marker="o", markersize=3)
