"""Figure of the score terms: the nine terms of one variable's score before and after a spike, and over training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.measures.arithmetic.spikes import Spike
from bindscope.studies.assign_add.learning.panels import mark_spikes
from bindscope.studies.plots.heat_map import draw_cells, write_cells
from bindscope.studies.plots.style import (
    BLUE,
    GREY,
    MUTED,
    ORANGE,
    new_figure,
    place_legend_above,
    set_step_axis,
    title_figure,
)

QUERY_LABELS, KEY_LABELS = ("E₌", "P₁₅", "h₌"), ("E value", "P value", "h value")
BOTH_WAYS = "PuOr_r"


def draw_score_terms(
    dataset: xr.Dataset, steps: tuple[int, int], variable: str, spikes: Sequence[Spike] = ()
) -> Figure:
    """Above, the nine terms for ``variable`` as either operand at two steps; below, whole scores and P₁₅·QK1·v over training."""
    with new_figure(11.4, 6.2) as figure:
        above, below = figure.subfigures(2, 1, height_ratios=[1, 1.1])  # type: ignore[misc]
        cells = dataset.term.sel(variable=variable)
        limit = float(np.abs(cells.sel(step=list(steps)).values).max())
        panels = above.subplots(1, 4)
        shown = [(operand, step) for operand in dataset.operand.values for step in steps]
        for axes, (operand, step) in zip(panels, shown):
            _draw_terms(axes, cells.sel(operand=operand, step=step), limit, f"{operand} operand, step {step:,}")
        left, right = below.subplots(1, 2)
        _draw_scores(left, dataset, variable)
        _draw_row(right, dataset, variable)
        for axes in (left, right):
            mark_spikes(axes, spikes)
        subtitle = (
            f"{dataset.attrs.get('run', '')} · mean over {int(dataset.attrs['n'])} sums of each; before the softmax"
        )
        title_figure(figure, f"The score that = gives the value of {variable} in layer 2", subtitle)
    return figure


def _draw_terms(axes: Axes, terms: xr.DataArray, limit: float, title: str) -> None:
    mesh = draw_cells(axes, terms.values, rows=QUERY_LABELS, columns=KEY_LABELS, colours=BOTH_WAYS, limits=(-limit, limit),
                      top_down=True)  # fmt: skip
    write_cells(axes, mesh, terms.values, lambda value: f"{value:.1f}", 8)
    axes.set_title(f"{title}\nsum {float(terms.sum()):.1f}", fontsize=8.5, loc="left", color=MUTED)


def _draw_scores(axes: Axes, dataset: xr.Dataset, variable: str) -> None:
    totals = dataset.term.sum(("query_part", "key_part"))
    set_step_axis(axes, dataset.step.values, "linear")
    for name in dataset.variable.values:
        for operand, colour in zip(dataset.operand.values, (BLUE, ORANGE)):
            named = str(name) == variable
            label = f"{variable} as {operand} operand" if named else None
            axes.plot(dataset.step, totals.sel(variable=name, operand=operand), color=colour if named else GREY,
                      lw=1.8 if named else 0.6, alpha=1 if named else 0.6, label=label, zorder=3 if named else 2)  # fmt: skip
    axes.set_ylabel("score of the value; grey: other variables", fontsize=8)
    place_legend_above(axes)


def _draw_row(axes: Axes, dataset: xr.Dataset, variable: str) -> None:
    set_step_axis(axes, dataset.step.values, "linear")
    for name in dataset.variable.values:
        named = str(name) == variable
        axes.plot(dataset.step, dataset.last_position_to_variable.sel(variable=name), color=ORANGE if named else GREY,
                  lw=1.8 if named else 0.6, label=str(name) if named else None, zorder=3 if named else 2)  # fmt: skip
    axes.set_ylabel("P₁₅·QK1·v in layer 1; grey: other variables", fontsize=8)
    place_legend_above(axes)
