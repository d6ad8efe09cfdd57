"""Figure of the score terms: the nine terms of one variable's score before and after a spike, and over training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.measures.arithmetic.spikes import Spike
from bindscope.studies.assign_add.learning.panels import mark_spikes
from bindscope.studies.assign_add.learning.phases import spikes_of
from bindscope.studies.assign_add.scores.describe import find_riser, steps_around
from bindscope.studies.plots.heat_map import draw_cells, write_cells
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
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
LAYER_1 = "layer 1"
GROUPS = {  # of terms, by whether layer 1 brought the query's part and the key's
    (True, True): ("h₌ · h", ORANGE),
    (True, False): ("h₌ · E, P", BLUE),
    (False, True): ("E₌, P₁₅ · h", CATEGORIES[2]),
    (False, False): ("the four without layer 1", GREY),
}


def draw_terms(results: Mapping[str, xr.Dataset]) -> Figure:
    """The terms of the variable whose score rises most across the run's last spike."""
    scores = results["score_terms"]
    spikes = spikes_of(results["trajectory"]) if "trajectory" in results else []
    steps = steps_around(scores, spikes)
    return draw_score_terms(scores, steps, find_riser(scores, steps), spikes)


def draw_score_terms(
    dataset: xr.Dataset, steps: tuple[int, int], variable: str, spikes: Sequence[Spike] = ()
) -> Figure:
    """Above, the nine terms for ``variable`` as either operand at two steps; then each of them over training; below, whole
    scores and P₁₅·QK1·v over training."""
    with new_figure(11.4, 8.8) as figure:
        above, middle, below = figure.subfigures(3, 1, height_ratios=[1.08, 1, 1])  # type: ignore[misc]
        cells = dataset.term.sel(variable=variable)
        limit = float(np.abs(cells.sel(step=list(steps)).values).max())
        panels = above.subplots(1, 4)
        shown = [(operand, step) for operand in dataset.operand.values for step in steps]
        for axes, (operand, step) in zip(panels, shown):
            _draw_terms(axes, cells.sel(operand=operand, step=step), limit, f"{operand} operand, step {step:,}")
        curves = middle.subplots(1, 2, sharey=True)
        for axes, operand in zip(curves, dataset.operand.values):
            _draw_curves(axes, cells.sel(operand=operand), f"{variable} as {operand} operand")
        left, right = below.subplots(1, 2)
        _draw_scores(left, dataset, variable)
        _draw_row(right, dataset, variable)
        for axes in (*curves, left, right):
            mark_spikes(axes, spikes)
        subtitle = (
            f"{dataset.attrs.get('run', '')} · mean over {int(dataset.attrs['n'])} sums of each; before the softmax"
        )
        title_figure(figure, f"The score that = gives the value of {variable} in layer 2\n", subtitle)
    return figure


def _draw_terms(axes: Axes, terms: xr.DataArray, limit: float, title: str) -> None:
    mesh = draw_cells(axes, terms.values, rows=QUERY_LABELS, columns=KEY_LABELS, colours=BOTH_WAYS, limits=(-limit, limit),
                      top_down=True)  # fmt: skip
    write_cells(axes, mesh, terms.values, lambda value: f"{value:.1f}".replace("-0.0", "0.0"), 8)
    axes.set_title(f"{title}\nsum {float(terms.sum()):.1f}", fontsize=8.5, loc="left", color=MUTED)


def _draw_curves(axes: Axes, terms: xr.DataArray, words: str) -> None:
    """Nine curves over training, in the four colours of ``GROUPS``."""
    set_step_axis(axes, terms.step.values, "linear")
    for (query_brought, key_brought), (label, colour) in GROUPS.items():
        group = terms.sel(
            query_part=(terms.query_part == LAYER_1) == query_brought,
            key_part=(terms.key_part == LAYER_1) == key_brought,
        )
        curves = group.stack(term=("query_part", "key_part")).transpose("step", "term")
        width = 2 if query_brought and key_brought else 1
        lines = axes.plot(terms.step, curves, color=colour, lw=width, zorder=2 + width)
        lines[0].set_label(label)
    axes.set_ylabel(f"term, {words}", fontsize=8)
    place_legend_above(axes)


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
