"""Figures of attention: the maps of one sum, and AA4."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from bindscope.measures.arithmetic.one_sum import looks_of_equals
from bindscope.studies.plots.heat_map import add_colour_bar, draw_fraction_map
from bindscope.studies.plots.style import (
    BLUE,
    DASHES,
    GREY,
    INK,
    MUTED,
    ORANGE,
    figure_style,
    format_fraction,
    new_figure,
    place_legend_above,
    plot_interval,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)
from bindscope.tasks.assign_add.sequence import ANSWER_POSITION, OPERAND_POSITIONS

MAPPED = "two variables"  # which of the forms of a sum is drawn
MAPPED_VALUES = (5, 10)  # where its values stand


def draw_sum(dataset: xr.Dataset) -> Figure:
    """The maps of one sum at one step, or what `=` attends to over steps where there are several.

    >>> save_figure(draw_sum(attention_of(model, task, tokens)), Path("sum.svg"))
    """
    several = "step" in dataset.dims and dataset.sizes["step"] > 1
    if "step" in dataset.dims and not several:
        dataset = dataset.isel(step=0)
    with figure_style():
        return _draw_steps(dataset) if several else _draw_maps(dataset)


def draw_looks(results: Mapping[str, xr.Dataset]) -> Figure:
    """AA4: how often each head attends as published, over training, and how much weight it has, and the mean maps of the last step."""
    dataset = results["attention"]
    with new_figure(11.6, 3.7) as figure:
        curves, *maps = figure.subplots(1, 3, width_ratios=[1.15, 1, 1])
        _draw_curves(curves, dataset)
        form = dataset.sel(form=MAPPED)
        tokens = [str(token) for token in form.token.values]
        for axes, layer, columns in zip(maps, (1, 2), (OPERAND_POSITIONS, MAPPED_VALUES)):
            mesh = draw_pattern(axes, form.mean_pattern.sel(layer=layer).values, tokens)
            _frame_cells(axes, [(ANSWER_POSITION, column) for column in columns])
            axes.set_title(f"layer {layer}, mean map of {MAPPED}", fontsize=8.5, loc="left", color=MUTED)
            axes.tick_params(labelsize=7)
        add_colour_bar(maps, mesh, percent=True)
        n, step = int(dataset.attrs["n"]), int(dataset.step[-1])
        subtitle = (
            f"{dataset.attrs.get('run', '')} · {n} sequences of each split, 95 % intervals · maps at step {step:,}"
        )
        title_figure(figure, "AA4 · Where the layers attend", subtitle)
    return figure


def _draw_curves(axes: Axes, dataset: xr.Dataset) -> None:
    steps = dataset.step.values
    series = (
        ("operands", ORANGE, "L1: = → operands"),
        ("numbers", GREY, "L1: number → variable"),
        ("values", BLUE, "L2: = → values"),
    )
    for look, colour, label in series:
        cell = dataset.sel(look=look)
        plot_interval(axes, steps, cell, "overall_fraction", colour, label=label)
        axes.plot(steps, cell.overall_mass, color=colour, linestyle=DASHES[2], linewidth=1.1)
    splits = [split for split in dataset.split.values if not str(split).startswith("0")]
    axes.plot(
        steps,
        dataset.shuffled_fraction.sel(split=splits).mean("split"),
        color=INK,
        linewidth=1,
        linestyle=DASHES[1],
        label="L2: another's values",
    )
    set_step_axis(axes, steps, "linear")
    set_fraction_axis(axes)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 0.99), ncols=2, columnspacing=1.0, fontsize=7.5)
    axes.set_ylabel("largest weights there; dotted: weight", fontsize=8)


def _draw_maps(dataset: xr.Dataset) -> Figure:
    layers = [int(layer) for layer in dataset.layer.values]
    figure = Figure(figsize=(4.5 * len(layers) + 1.2, 4.5), layout="constrained")
    panels = figure.subplots(1, len(layers), squeeze=False)[0]
    tokens = [str(token) for token in dataset.token.values]
    for index, (axes, layer) in enumerate(zip(panels, layers)):
        mesh = draw_pattern(axes, dataset.pattern.sel(layer=layer).values, tokens)
        last = layer == layers[-1]
        columns = dataset.value_position.values if last else OPERAND_POSITIONS
        _frame_cells(axes, [(ANSWER_POSITION, int(column)) for column in columns])
        words = "the operands' numbers" if last else "the operands"
        axes.set_title(f"layer {layer}, framed: {words}", fontsize=9, loc="left", color=MUTED)
        axes.set_xlabel("attends to")
        axes.set_ylabel("token" if index == 0 else "")
    add_colour_bar(list(panels), mesh, percent=True)
    title_figure(figure, f"Attention · {dataset.attrs['text']}", _describe_answer(dataset))
    return figure


def draw_pattern(axes: Axes, pattern: np.ndarray, tokens: list[str]) -> QuadMesh:
    """One map [query, key]; what a causal model cannot see stays empty."""
    seen = np.tril(np.ones(pattern.shape, dtype=bool))
    mesh = draw_fraction_map(axes, np.where(seen, pattern, np.nan), tokens, tokens, written=False)
    axes.set_aspect("equal")
    return mesh


def _draw_steps(dataset: xr.Dataset) -> Figure:
    figure = Figure(figsize=(7.4, 3.2), layout="constrained")
    axes, steps, looks = figure.subplots(), dataset.step.values, looks_of_equals(dataset)
    series = (
        (dataset.probability.sel(output=dataset.attrs["answer"]), INK, "right answer"),
        (_summed(looks.operands, dataset.operand_position), ORANGE, "layer 1: = on operands"),
        (_summed(looks["values"], dataset.value_position), BLUE, "last layer: = on values"),
    )
    for index, (fraction, colour, label) in enumerate(series):
        axes.plot(steps, fraction.values, color=colour, linestyle=DASHES[index], label=label)
    set_step_axis(axes, steps, "linear")
    set_fraction_axis(axes)
    place_legend_above(axes)
    title_figure(figure, f"Attention · {dataset.attrs['text']}", dataset.attrs.get("run", ""))
    return figure


def _summed(looks: xr.DataArray, positions: xr.DataArray) -> xr.DataArray:
    """Over both operands; a column that holds both numbers (b+b) counts once."""
    return looks.isel(operand=0) if len(set(positions.values.tolist())) == 1 else looks.sum("operand")


def _frame_cells(axes: Axes, cells: list[tuple[int, int]]) -> None:
    for query, key in cells:
        box = Rectangle((key - 0.5, query - 0.5), 1, 1, fill=False, edgecolor=ORANGE, linewidth=1.6, clip_on=False)
        axes.add_patch(box)


def _describe_answer(dataset: xr.Dataset) -> str:
    best = int(dataset.probability.argmax("output"))
    predicted, fraction = str(dataset.output.values[best]), float(dataset.probability[best])
    where = f"{dataset.attrs.get('run', '')} at step {int(dataset.step):,} · " if "step" in dataset.coords else ""
    return f"{where}answers {predicted} with {format_fraction(fraction)}, right is {dataset.attrs['answer']}"
