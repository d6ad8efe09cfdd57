"""Figures of AA8 and AA9: matrices of weights at the last checkpoint, and how they came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from bindscope.studies.assign_add.learning.panels import mark_spikes
from bindscope.studies.assign_add.learning.phases import spikes_of
from bindscope.studies.plots.heat_map import BOTH_WAYS, add_colour_bar, draw_cells
from bindscope.studies.plots.style import (
    BLUE,
    GREY,
    INK,
    MUTED,
    ORANGE,
    new_figure,
    ordered_colours,
    place_legend_above,
    set_step_axis,
    title_figure,
)
from bindscope.tasks.assign_add.sequence import N_PREFIX, OPERAND_POSITIONS

KIND_MARKS = {
    "number": "numbers",
    "variable": "variables",
    "position": "positions",
}  # the others are too narrow for one
N_NAMED = 2  # variables drawn in colour: those that were worst off


def draw_first_layer(results: Mapping[str, xr.Dataset]) -> Figure:
    """QK1 over all embeddings, its position block, the margins over training, and what ``=`` prefers."""
    dataset, spikes = results["weights"], spikes_of(results["trajectory"])
    with new_figure(10.4, 8.6) as figure:
        axes = [figure.add_subplot(2, 2, index) for index in range(1, 5)]
        _draw_all_pairs(axes[0], dataset)
        _draw_positions(axes[1], dataset)
        margins = dataset.position_margin.dropna("position", how="all")
        _draw_curves(axes[2], margins, [f"{int(position)}" for position in margins.position.values], "position")
        _title(axes[2], "Margin of the position before, over training", "above 0: preferred to every other allowed one")
        _draw_equals_positions(axes[3], dataset)
        for curves in axes[2:]:
            mark_spikes(curves, spikes)
        title_figure(figure, "AA8 · Layer 1 attends one back, and = to the operands\n", _subtitle(dataset))
    return figure


def draw_identity(results: Mapping[str, xr.Dataset]) -> Figure:
    """The matrix over variables at the last checkpoint, its margins over training, and what ``=`` gives each variable."""
    dataset, spikes = results["weights"], spikes_of(results["trajectory"])
    with new_figure(10.4, 8.2) as figure:
        axes = [figure.add_subplot(2, 2, index) for index in range(1, 5)]
        variables = list(dataset.variable.values)
        first, last = dataset.variable_identity.values[0], dataset.variable_identity.values[-1]
        _draw_variables(axes[0], last, variables)
        _title(
            axes[0],
            f"Last checkpoint, step {int(dataset.step[-1]):,}",
            "row: copy held by =; column: copy held by a number",
        )
        _draw_variables(axes[1], first, variables)
        _title(axes[1], f"First checkpoint, step {int(dataset.step[0]):,}", "the same, on a scale of its own")
        _draw_named(axes[2], dataset.identity_margin)
        _title(axes[2], "Margin of the diagonal, over training", "above 0: the variable matches itself best")
        _draw_named(axes[3], dataset.equals_to_variable)
        _title(axes[3], "Score that = gives each variable in layer 1", "e_= QK1 vᵀ, by the token's embedding alone")
        for curves in axes[2:]:
            mark_spikes(curves, spikes)
        title_figure(figure, "AA9 · Layer 2 matches a variable with itself\n", _subtitle(dataset))
    return figure


def draw_matrices(dataset: xr.Dataset) -> Figure:
    """The matrices of one checkpoint, as ``circuit_matrices`` gives them.

    >>> save_figure(draw_matrices(circuit_matrices(forms, task)), Path("circuit.svg"))
    """
    with new_figure(13.2, 5.1) as figure:
        axes = [figure.add_subplot(1, 3, index) for index in range(1, 4)]
        _draw_all_pairs(axes[0], dataset, "row: who attends; column: to whom")
        _draw_positions(axes[1], dataset.assign(positions=dataset.positions.expand_dims("step")))
        _draw_variables(
            axes[2], dataset.variable_identity.values, [str(name) for name in dataset.query_variable.values]
        )
        _title(axes[2], "Variable to variable, layer 2", "row: copy held by =; column: copy held by a number")
        where = f" at step {int(dataset.attrs['step']):,}" if "step" in dataset.attrs else ""
        title_figure(
            figure, "The routing circuit", f"{dataset.attrs.get('run', '')}{where} · scores before the softmax"
        )
    return figure


def _draw_all_pairs(
    axes: Axes, dataset: xr.Dataset, subtitle: str = "row: who attends; column: to whom; last checkpoint"
) -> None:
    kinds = dataset.query_kind.values
    _draw_matrix(axes, dataset.qk1.values)
    edges = np.flatnonzero(kinds[1:] != kinds[:-1]) + 0.5
    for edge in edges:
        axes.axhline(edge, color=MUTED, linewidth=0.4)
        axes.axvline(edge, color=MUTED, linewidth=0.4)
    middles = {word: np.flatnonzero(kinds == kind).mean() for kind, word in KIND_MARKS.items()}
    middles["+ = PAD"] = np.flatnonzero(np.isin(kinds, ("operator", "equals", "pad"))).mean()
    axes.set_xticks(list(middles.values()), list(middles), rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(list(middles.values()), list(middles))
    _title(axes, "QK1 over all pairs of embeddings", subtitle)


def _draw_positions(axes: Axes, dataset: xr.Dataset) -> None:
    scores = np.where(dataset.allowed.values, dataset.positions.values[-1], np.nan)[1:N_PREFIX, : N_PREFIX - 1]
    mesh = draw_cells(axes, scores, row_edges=np.arange(1, N_PREFIX + 1) - 0.5)
    best = np.nanargmax(scores, axis=1)
    axes.plot(best, np.arange(1, N_PREFIX), "o", color="white", markeredgecolor=INK, markersize=5)
    _frame(axes, mesh)
    axes.set_xticks(range(N_PREFIX - 1))
    axes.set_yticks(range(1, N_PREFIX))
    axes.set_xlabel("position attended to")
    axes.set_ylabel("position that attends")
    axes.invert_yaxis()
    _title(
        axes,
        "Position to position, where a variable can stand",
        "dot: highest of its row; empty: later, itself, or two before",
    )


def _draw_equals_positions(axes: Axes, dataset: xr.Dataset) -> None:
    colours = {OPERAND_POSITIONS[0]: BLUE, OPERAND_POSITIONS[1]: ORANGE}
    _draw_among(axes, dataset.equals_to_position, "position", colours, "position ", thin=0.7, faint=0.6)
    place_legend_above(axes)
    _title(axes, "Score that = gives each position in layer 1", "e_= QK1 p_jᵀ, by the token's embedding alone")


def _draw_named(axes: Axes, curves: xr.DataArray) -> None:
    """Every variable in grey, and in colour those that were lowest for longest."""
    lowest = curves["variable"].values[np.argsort(_times_lowest(curves), kind="stable")[::-1][:N_NAMED]]
    _draw_among(axes, curves, "variable", dict(zip(lowest.tolist(), (ORANGE, BLUE))))
    axes.axhline(0, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
    place_legend_above(axes)


def _draw_among(
    axes: Axes,
    curves: xr.DataArray,
    dimension: str,
    colours: Mapping[Any, str],
    word: str = "",
    thin: float = 0.8,
    faint: float = 0.7,
) -> None:
    """Curves over steps: those with a colour by name, the others thin, faint and grey."""
    set_step_axis(axes, curves.step.values, "linear")
    labels = {name: f"{word}{name}" for name in colours}
    labels |= {next(name for name in curves[dimension].values if name not in colours): "the others"}
    for name in curves[dimension].values:
        named = name in colours
        axes.plot(
            curves.step.values,
            curves.sel({dimension: name}).values,
            color=colours.get(name, GREY),
            linewidth=1.8 if named else thin,
            alpha=1 if named else faint,
            label=labels.get(name),
            zorder=3 if named else 2,
        )


def _times_lowest(curves: xr.DataArray) -> np.ndarray:
    """How often each variable is the lowest in the second half of the checkpoints."""
    later = curves.transpose("step", "variable").values[curves.sizes["step"] // 2 :]
    return np.bincount(later.argmin(1), minlength=curves.sizes["variable"])


def _draw_curves(axes: Axes, curves: xr.DataArray, labels: list[str], what: str) -> None:
    set_step_axis(axes, curves.step.values, "linear")
    dimension = next(str(dim) for dim in curves.dims if dim != "step")
    for index, (label, colour) in enumerate(zip(labels, ordered_colours(len(labels)))):
        axes.plot(curves.step.values, curves.isel({dimension: index}).values, color=colour, linewidth=1.2, label=label)
    axes.axhline(0, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
    place_legend_above(axes, title=what)


def _draw_variables(axes: Axes, matrix: np.ndarray, variables: list[str]) -> None:
    _draw_matrix(axes, matrix)
    axes.set_xticks(range(len(variables)), variables)
    axes.set_yticks(range(len(variables)), variables)


def _draw_matrix(axes: Axes, matrix: np.ndarray) -> None:
    """A square matrix in blue–white–orange around 0, the first row at the top."""
    largest = max(float(np.abs(matrix).max()), 1e-9)
    mesh = draw_cells(axes, matrix, colours=BOTH_WAYS, limits=(-largest, largest), top_down=True)
    _frame(axes, mesh)


def _frame(axes: Axes, mesh: QuadMesh) -> None:
    axes.set_aspect("equal")
    add_colour_bar(axes, mesh, "score", fraction=0.046)


def _title(axes: Axes, title: str, subtitle: str) -> None:
    axes.set_title(title, loc="left", fontsize=9.5, fontweight="bold", color=INK, pad=31)
    axes.annotate(
        subtitle, (0, 1), xytext=(0, 20), xycoords="axes fraction", textcoords="offset points", fontsize=8, color=MUTED
    )


def _subtitle(dataset: xr.Dataset) -> str:
    return f"{dataset.attrs.get('run', '')} · {dataset.sizes['step']} checkpoints; scores before the softmax; bands: spikes"
