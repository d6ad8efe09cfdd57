"""Figures of what a notebook asks about abstract symbols: an experiment's own figure, and sequences of a template."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bindscope.errors import BindscopeError
from bindscope.studies.framework.experiments import find_experiment
from bindscope.studies.plots.style import CATEGORIES, INK, MUTED, figure_style

MOST_ROWS = 24  # sequences in a figure; the dataset has all


def figure_experiment(dataset: xr.Dataset) -> Figure:
    """The figure that the experiment itself draws."""
    if not dataset.sizes["variant"]:
        raise BindscopeError("there is no variant left to draw.")
    return find_experiment(str(dataset.attrs["experiment"])).draw(dataset)


def figure_samples(dataset: xr.Dataset) -> Figure:
    """Sequences as rows under their template; equal symbols of a row have one colour, regular tokens none."""
    shown = dataset.isel(sample=slice(0, MOST_ROWS))
    wildcards = [str(name) for name in dataset.wildcard.values]
    colours = {name: CATEGORIES[index % len(CATEGORIES)] for index, name in enumerate(wildcards)}
    written = [str(token) for token in dataset.written.values]
    width = 0.35 + 0.1 * max((len(str(token)) for token in [*written, *shown.token.values.ravel()]), default=1)
    with figure_style():
        figure = Figure(figsize=(0.4 + width * len(written), 0.4 + 0.34 * (shown.sizes["sample"] + 1)))
        axes = figure.add_axes((0, 0, 1, 1))
        for index, (name, is_wildcard) in enumerate(zip(written, dataset.is_wildcard.values)):
            colour = colours[name] if is_wildcard else MUTED
            axes.text(index, 0, name, ha="center", va="center", color=colour, fontweight="bold")
            for row, token in enumerate(shown.token.values[:, index], start=1):
                if is_wildcard:
                    axes.add_patch(Rectangle((index - 0.46, row - 0.42), 0.92, 0.84, color=colour, alpha=0.22, lw=0))
                axes.text(index, row, str(token), ha="center", va="center", color=INK if is_wildcard else MUTED)
        axes.set_xlim(-0.6, len(written) - 0.4)
        axes.set_ylim(shown.sizes["sample"] + 0.6, -0.6)
        axes.set_axis_off()
    return figure
