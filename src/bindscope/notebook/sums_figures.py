"""Figures of what a notebook asks of a run on modular addition and no other page draws: splits, spikes, progress, a neuron."""

from __future__ import annotations

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.components import read_fit
from bindscope.studies.assign_add.learning.spikes import read_spikes
from bindscope.studies.assign_add.neurons.draw import draw_neuron
from bindscope.studies.assign_add.progress.draw import draw_progress
from bindscope.studies.framework.trajectory import phases_of
from bindscope.studies.plots.panels import draw_grid
from bindscope.studies.plots.style import BLUE, GREY, INK, figure_style, set_fraction_axis, title_figure

SPLIT_PANELS = ("accuracy", "swap", "variables-1", "variables-2")
MOST_BESIDE = 3  # spikes in a row
SOURCES = {"model": "on all literal sums", "circuit": "OV2 and the MLP alone"}


def figure_splits(dataset: xr.Dataset) -> Figure:
    """The nine splits together and by kind, with the spikes marked."""
    figure = draw_grid(dataset, phases_of(dataset), names=SPLIT_PANELS)
    n = int(dataset.split_n.values[0])
    with figure_style():
        words = f"{dataset.attrs.get('run', '')} · {n:,} sums a split, 95 % Wilson intervals; grey bands: spikes"
        title_figure(figure, "Nine splits over training", words)
    return figure


def figure_spikes(dataset: xr.Dataset) -> Figure:
    """Each split before and after a spike; blue where the split jumps."""
    if not dataset.sizes["spike"]:
        raise BindscopeError("this run has no spike to draw.")
    splits = [str(split) for split in dataset.split.values]
    with figure_style():
        n_columns = min(dataset.sizes["spike"], MOST_BESIDE)
        n_rows = -(-dataset.sizes["spike"] // MOST_BESIDE)
        figure = Figure(figsize=(1.0 + 3.6 * n_columns, 0.6 + 2.3 * n_rows), layout="constrained")
        panels = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
        for axes in panels[dataset.sizes["spike"] :]:
            axes.set_visible(False)
        for axes, number in zip(panels, dataset.spike.values):
            spike = dataset.sel(spike=number)
            _draw_spike(axes, spike)
            axes.set_xticks(range(len(splits)), splits)
            words = f"spike {int(number)}: step {int(spike.before_step):,} → {int(spike.after_step):,}"
            axes.set_title(words, loc="left", fontsize=9, color=INK)
        title_figure(figure, "What the spikes change", "accuracy before (open) and after (filled) · blue: jumps")
    return figure


def figure_progress(dataset: xr.Dataset) -> Figure:
    """The seven measures with the run's spikes marked."""
    return draw_progress(dataset, read_spikes(dataset))


def figure_neuron(dataset: xr.Dataset, source: str = "model") -> Figure:
    """The neuron, its Fourier component and what the Fourier component leaves: of the whole ``model``, or of the ``circuit`` alone."""
    if source not in SOURCES:
        raise BindscopeError(f"there is no source '{source}' here; there are {' and '.join(SOURCES)}.")
    fit = read_fit(dataset, source)
    where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}"
    words = f"{SOURCES[source]} · k = {fit.frequency}, explained variance {fit.explained_variance:.1%}"
    values = dataset.preactivation.sel(source=source).values
    return draw_neuron(values, fit, f"Neuron {int(dataset.attrs['neuron'])} · {where}", words)


def _draw_spike(axes: Axes, spike: xr.Dataset) -> None:
    """One split beside the other: an open mark before, a filled one after, each with its interval."""
    for column, jumps in enumerate(spike.jumped.values):
        colour = BLUE if jumps else GREY
        marks = {"before": (column - 0.16, "white"), "after": (column + 0.16, colour)}
        values = {end: float(spike[f"accuracy_{end}"][column]) for end in marks}
        axes.plot([x for x, _ in marks.values()], list(values.values()), color=colour, linewidth=1.4)
        for end, (x, face) in marks.items():
            low, high = (float(spike[f"accuracy_{end}_{side}"][column]) for side in ("low", "high"))
            axes.plot([x, x], [low, high], color=colour, linewidth=1)
            axes.plot([x], [values[end]], "o", markersize=5, markeredgecolor=colour, color=face)
    axes.grid(False, axis="x")
    set_fraction_axis(axes)
