"""Figures of VB1 and VB2: how a run learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import xarray as xr
from matplotlib.figure import Figure

from bindscope.studies.framework.trajectory import phases_of
from bindscope.studies.plots.panels import draw_grid
from bindscope.studies.plots.style import figure_style, title_figure


def draw_phases(results: Mapping[str, xr.Dataset]) -> Figure:
    """Accuracy with the phases shaded, and which strategy the predictions follow."""
    return _draw_panels(results["trajectory"], ("accuracy", "strategy"), "VB1 · Three phases of learning")


def draw_sources(results: Mapping[str, xr.Dataset]) -> Figure:
    """Accuracy by depth and by root line, where predictions come from, and the rules they agree with."""
    panels = ("depth", "root-line", "source", "rules")
    return _draw_panels(results["trajectory"], panels, "VB2 · What is learned first, and where answers come from")


def _draw_panels(dataset: xr.Dataset, names: Sequence[str], title: str) -> Figure:
    figure = draw_grid(dataset, phases_of(dataset), names=names)
    n = int(dataset.split_n.sel(split="test"))
    with figure_style():
        title_figure(figure, title, f"{dataset.attrs.get('run', '')} · {n:,} test programs, 95 % Wilson intervals")
    return figure
