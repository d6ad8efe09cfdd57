"""Figures of reassignment: through training, and layer by layer at one checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.measures.binding.phases import PHASES
from bindscope.measures.binding.reassignment.finding import best_layer
from bindscope.studies.plots.heat_map import draw_fraction_map
from bindscope.studies.plots.over_training import plot_over_steps, shade_phases
from bindscope.studies.plots.style import (
    CATEGORIES,
    MUTED,
    new_figure,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)

TITLE = "What becomes of a variable that is assigned again\n"
IN_FORCE = {"query": "last", "earlier": "last", "later": "first"}  # which write counts in each situation
SITUATIONS = {
    "query": "queried variable: last write",
    "earlier": "inside the chain: last write",
    "later": "overwritten after its use: first write",
}
PARTS = ("name", "value", "line", "lines after", "query", "colon")
PROBED = (("local", "right-hand side"), ("global", "line end"), ("asked", "colon"))


def draw_reassignment(results: Mapping[str, xr.Dataset]) -> Figure:
    """Above, through training: answers, what undoes an overwrite, and probes; below, the last checkpoint layer by layer."""
    dataset = results["reassignment"]
    with new_figure(12.4, 6.8) as figure:
        above, below = figure.subplots(2, 3)
        for axes in above:
            set_step_axis(axes, dataset.step.values)
            shade_phases(axes, results, PHASES)
        _draw_training(above, dataset)
        _draw_layers(below, dataset.isel(step=-1))
        last, n = int(dataset.step[-1]), int(dataset.attrs["n"])
        subtitle = f"{dataset.attrs.get('run', '')} · below at step {last:,} · {n} pairs of each kind"
        title_figure(figure, TITLE, subtitle)
    return figure


def draw_checkpoint(dataset: xr.Dataset) -> Figure:
    """One checkpoint, layer by layer."""
    with new_figure(12.4, 3.9) as figure:
        _draw_layers(figure.subplots(1, 3), dataset)
        where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}"
        title_figure(figure, TITLE, f"{where} · {int(dataset.attrs['n'])} pairs of each kind")
    return figure


def _draw_training(panels: Sequence[Axes], dataset: xr.Dataset) -> None:
    answers, undone, probes = panels
    for (situation, words), colour in zip(SITUATIONS.items(), CATEGORIES):
        plot_over_steps(answers, dataset.sel(situation=situation, outcome="right"), "answered", colour, words)
    for part, colour in zip(PARTS, CATEGORIES):
        one = dataset.sel(operation="constant", part=part)
        layer = int(one.undone.isel(step=-1).argmax("layer"))
        plot_over_steps(undone, one.isel(layer=layer), "undone", colour, f"{part}, L{layer}")
    for (state, place), colour in zip(PROBED, CATEGORIES):
        one = dataset.sel(state=state, place=place)
        layer = best_layer(one.excess.isel(step=-1))
        plot_over_steps(probes, one.sel(layer=layer), "excess", colour, f"{state}, {place}, L{layer}")
    for axes, words in zip(panels, ("answered with the write in force", "patched so that the overwrite is undone", "probes above the better control")):  # fmt: skip
        axes.set_title(words, fontsize=8.5, loc="left", color=MUTED)
        axes.legend(fontsize=7)
    set_fraction_axis(answers)
    set_fraction_axis(undone)


def _draw_layers(panels: Sequence[Axes], dataset: xr.Dataset) -> None:
    writes, undone, probes = panels
    layers = [*(f"L{layer}" for layer in dataset.layer.values[:-1]), "end"]
    rows = [(situation, str(position)) for situation in IN_FORCE for position in dataset.position.values]
    rows = [row for row in rows if row != ("query", "reference")]
    cells = [dataset.write.sel(situation=name, position=at, came=IN_FORCE[name]).values for name, at in rows]
    _draw_map(writes, cells, [f"{name}: {at}" for name, at in rows], layers, "brings the digit of the write in force")
    pairs = [(str(name), str(part)) for name in dataset.operation.values for part in dataset.part.values]
    cells = [dataset.undone.sel(operation=name, part=part).values for name, part in pairs]
    _draw_map(undone, cells, [f"{name}: {part}" for name, part in pairs], layers, "undoes the overwrite")
    known = [(str(state), str(place)) for state in dataset.state.values for place in dataset.place.values]
    known = [(state, place) for state, place in known if dataset.excess.sel(state=state, place=place).notnull().any()]
    cells = [dataset.excess.sel(state=state, place=place).values for state, place in known]
    _draw_map(probes, cells, [f"{state}: {place}" for state, place in known], layers, "probes above the better control")


def _draw_map(axes: Axes, cells: Sequence[object], rows: Sequence[str], columns: Sequence[str], words: str) -> None:
    draw_fraction_map(axes, np.array(cells, float), rows, columns, font_size=6)
    axes.tick_params(labelsize=7)
    axes.set_title(words, fontsize=8.5, loc="left", color=MUTED)
