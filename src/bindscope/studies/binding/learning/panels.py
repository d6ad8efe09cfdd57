"""The panels of a trajectory of programs: accuracy by depth and line, where predictions come from, which rules they follow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.ticker import PercentFormatter
from matplotlib.transforms import blended_transform_factory

from bindscope.intervals import wilson_interval
from bindscope.measures.binding.phases import PhaseCriterion
from bindscope.studies.plots.curves import Panel, draw_curve, plot_values
from bindscope.studies.plots.heat_map import add_colour_bar, draw_cells
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    DASHES,
    GREY,
    MUTED,
    ORANGE,
    ordered_colours,
    place_legend_above,
    set_fraction_axis,
    source_colours,
)

RULE_NAMES: Mapping[str, str] = {
    "line_1": "line 1",
    "line_2": "line 2",
    "first_constant": "first constant",
    "most_recent": "last constant",
    "positional": "nearest",
}
N_SINGLE_SOURCES = 4  # lines drawn apart in the source panel; later ones are taken together


def binding_panels(dataset: xr.Dataset) -> list[Panel]:
    """What is worth seeing of a run on programs."""
    n, n_misleading = int(dataset.split_n.sel(split="test")), int(dataset.n_misleading)
    return [
        Panel(
            "accuracy",
            "Accuracy and phases",
            f"right answers on {n:,} held-out programs, 95 % interval",
            lambda axes: _draw_accuracy(axes, dataset),
        ),
        Panel(
            "strategy",
            "Early lines or the chain?",
            f"the {n_misleading:,} programs whose answer is not on line 1 or 2",
            lambda axes: _draw_strategy(axes, dataset),
        ),
        Panel(
            "depth",
            "By depth of the chain",
            "right answers by number of assignments from query to constant",
            lambda axes: _draw_depths(axes, dataset),
        ),
        Panel(
            "root-line",
            "By line of the answer",
            "right answers by the line that holds the constant",
            lambda axes: _draw_root_lines(axes, dataset),
            shaded=False,
        ),
        Panel(
            "source",
            "Where predictions come from",
            "first line that assigns the predicted digit; narrow bar: the right answers",
            lambda axes: _draw_sources(axes, dataset),
            shaded=False,
        ),
        Panel(
            "rules",
            "Agreement with simple rules",
            "predictions equal to each rule's; triangles: how often the rule is right",
            lambda axes: _draw_rules(axes, dataset),
        ),
    ]


def _draw_accuracy(axes: Axes, dataset: xr.Dataset) -> None:
    for index, split in enumerate(dataset.split.values):
        draw_curve(axes, dataset, split, CATEGORIES[0] if split == "test" else CATEGORIES[2], str(split), index)
    chance = float(dataset.split_chance.sel(split="test"))
    axes.axhline(chance, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
    axes.text(
        0.99, chance + 0.015, "chance", transform=axes.get_yaxis_transform(), ha="right", fontsize=7.5, color=MUTED
    )
    set_fraction_axis(axes)
    if dataset.sizes["split"] > 1:
        axes.legend(loc="lower right", bbox_to_anchor=(1, chance + 0.05))


def _draw_strategy(axes: Axes, dataset: xr.Dataset) -> None:
    n = int(dataset.n_misleading)
    curves = ((dataset.follows_chain, BLUE, "follows the chain"), (dataset.follows_early_lines, ORANGE, "line 1 or 2"))
    for index, (curve, colour, label) in enumerate(curves):
        values = curve.values
        low, high = wilson_interval(np.nan_to_num(values) * n, n)
        axes.fill_between(dataset.step.values, low, high, color=colour, alpha=0.2, linewidth=0)
        plot_values(axes, dataset, values, color=colour, label=label, linestyle=DASHES[index])
    threshold = PhaseCriterion().chain_fraction
    axes.axhline(threshold, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
    set_fraction_axis(axes)
    place_legend_above(axes)


def _draw_depths(axes: Axes, dataset: xr.Dataset) -> None:
    for depth, colour in zip(dataset.depth.values, ordered_colours(dataset.sizes["depth"])):
        values = dataset.accuracy_by_depth.sel(depth=depth).values
        plot_values(axes, dataset, values, color=colour, label=f"{int(depth)}", linestyle=DASHES[(int(depth) - 1) % 4])
    set_fraction_axis(axes)
    place_legend_above(axes, title="depth")


def _draw_root_lines(axes: Axes, dataset: xr.Dataset) -> None:
    mesh = _draw_heat_map(axes, dataset.accuracy_by_root_line.values.T, dataset.step.values)
    n_lines = dataset.sizes["root_line"]
    axes.set_yticks(sorted({1, *range(0, n_lines + 1, max(1, n_lines // 4 if n_lines > 8 else 1))} - {0}))
    axes.set_ylim(n_lines + 0.5, 0.5)
    axes.set_ylabel("line")
    axes.grid(False)
    add_colour_bar(axes, mesh, percent=True)


def _draw_heat_map(axes: Axes, cells: np.ndarray, steps: np.ndarray) -> QuadMesh:
    """``cells [row, step]`` with rows 1, 2, … and each step's column reaching half-way to its neighbours."""
    n_rows = len(cells)
    if len(steps) == 1:
        edges = np.array([steps[0] - 1.0, steps[0] + 1.0])
    else:
        edges = np.concatenate([[steps[0]], (steps[1:] + steps[:-1]) / 2, [steps[-1]]]).astype(float)
    return draw_cells(axes, cells, limits=(0, 1), column_edges=edges, row_edges=np.arange(n_rows + 1) + 0.5)


def _draw_sources(axes: Axes, dataset: xr.Dataset) -> None:
    fractions, labels = _gathered_sources(dataset.prediction_source.values)
    truth, _ = _gathered_sources(dataset.answer_source.values[None])
    colours = [*source_colours(len(labels) - 1), "#c3c8d0"]
    steps = dataset.step.values.astype(float)
    if len(steps) == 1:
        steps, fractions = np.array([steps[0] - 1, steps[0] + 1]), np.repeat(fractions, 2, axis=0)
    axes.stackplot(steps, fractions.T, colors=colours, labels=labels, linewidth=0)
    bar = axes.inset_axes((1.025, 0, 0.045, 1))
    bottoms = np.concatenate([[0], np.cumsum(truth[0])[:-1]])
    bar.bar(np.zeros(len(labels)), truth[0], bottom=bottoms, color=colours, width=1)
    bar.set(xlim=(-0.5, 0.5), ylim=(0, 1), xticks=[], yticks=[])
    bar.spines[:].set_visible(False)
    axes.set_ylim(0, 1)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.grid(False)
    place_legend_above(axes)


def _gathered_sources(fractions: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Fractions ``[step, source]`` with the later lines taken together, and a label for each column."""
    n_lines = fractions.shape[1] - 1
    names = [f"line {line}" if line == 1 else f"{line}" for line in range(1, n_lines + 1)]
    if n_lines <= N_SINGLE_SOURCES + 1:
        return fractions, [*names, "none"]
    later = fractions[:, N_SINGLE_SOURCES:-1].sum(1, keepdims=True)
    gathered = np.concatenate([fractions[:, :N_SINGLE_SOURCES], later, fractions[:, -1:]], axis=1)
    return gathered, [*names[:N_SINGLE_SOURCES], f"{N_SINGLE_SOURCES + 1}–{n_lines}", "none"]


def _draw_rules(axes: Axes, dataset: xr.Dataset) -> None:
    at_right_edge = blended_transform_factory(axes.transAxes, axes.transData)
    for index, rule in enumerate(_distinct_rules(dataset)):
        colour = (ORANGE, "#b0893a", "#8c5fbf", BLUE, GREY)[index % 5]
        values = dataset.agreement.sel(rule=rule).values
        label = RULE_NAMES.get(str(rule), str(rule).replace("_", " "))
        plot_values(axes, dataset, values, color=colour, label=label, linestyle=DASHES[index % len(DASHES)])
        truth = float(dataset.rule_accuracy.sel(rule=rule))
        axes.plot(1.02, truth, "<", color=colour, markersize=5, transform=at_right_edge, clip_on=False)
    set_fraction_axis(axes)
    place_legend_above(axes)


def _distinct_rules(dataset: xr.Dataset) -> list[str]:
    """The rules without those that said the same as an earlier one throughout."""
    kept: list[str] = []
    for rule in sorted(dataset.rule.values, key=lambda rule: list(RULE_NAMES).index(rule) if rule in RULE_NAMES else 9):
        curve = dataset.agreement.sel(rule=rule).values
        if not any(np.array_equal(curve, dataset.agreement.sel(rule=k).values, equal_nan=True) for k in kept):
            kept.append(str(rule))
    return kept
