"""The figure of AA1: nine splits with phases and spikes, and held-out pairs by whether their swap was trained."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr
from matplotlib.figure import Figure

from bindscope.studies.framework.trajectory import phases_of
from bindscope.studies.plots.panels import draw_grid
from bindscope.studies.plots.style import figure_style, title_figure

PANELS = ("accuracy", "swap", "variables-1", "variables-2")


def draw_learning(results: Mapping[str, xr.Dataset]) -> Figure:
    """All splits together and the halves of the held-out ones beside them; below, sums with one and two variables."""
    dataset = results["trajectory"]
    figure = draw_grid(dataset, phases_of(dataset), names=PANELS)
    n = int(dataset.split_n.values[0])
    with figure_style():
        words = f"{dataset.attrs.get('run', '')} · {n:,} sums a split, 95 % Wilson intervals; grey bands: spikes"
        title_figure(figure, "AA1 · Three phases and two spikes", words)
    return figure
