"""The local learning coefficient over training: beside accuracy, its traces, and by layer and kind of question."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.plots.phases import draw_learning, start_strip
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    DASHES,
    GREY,
    ORANGE,
    new_figure,
    ordered_colours,
    plot_interval,
    title_figure,
)

# the vertical axis is linear up to here and logarithmic beyond: some models have hundreds, on either side of 0
LINEAR_BELOW = 100.0
N_TRACES = 3


def draw_coefficients(found: Mapping[str, xr.Dataset]) -> Figure:
    """Accuracy, the coefficient, and the traces of a few checkpoints."""
    dataset, trajectory = found["coefficient"], found.get("trajectory")
    n_strips = 2 + (trajectory is not None)
    with new_figure(8.6, 1.2 + 2.1 * n_strips) as figure:
        strips = list(figure.subplots(n_strips, 1))
        if trajectory is not None:
            draw_learning(strips[0], trajectory, dataset.step.values)
        _draw_whole(strips[-2], dataset, trajectory)
        _draw_traces(strips[-1], dataset)
        title_figure(figure, "The local learning coefficient over training\n", _describe(dataset))
    return figure


def draw_refined(found: Mapping[str, xr.Dataset]) -> Figure:
    """The coefficient of one layer's weights alone, and on some questions alone, around the end of the plateau."""
    refined, trajectory = found["coefficient_refined"], found.get("trajectory")
    with new_figure(8.6, 5.6) as figure:
        above, below = figure.subplots(2, 1)
        _draw_rows(above, refined.isel(row=np.flatnonzero(refined.data == "all")), "part", trajectory)
        _draw_rows(below, refined.isel(row=np.flatnonzero(refined.part == "all")), "data", trajectory)
        title_figure(figure, "The coefficient by layer and by question\n", _describe(refined))
    return figure


def draw_coefficient(dataset: xr.Dataset) -> Figure:
    """Of a question: the coefficient over its steps, where they are several, above its traces."""
    several = dataset.sizes["step"] > 1
    with new_figure(8.6, 5.0 if several else 3.0) as figure:
        panels = figure.subplots(1 + several, 1, squeeze=False)[:, 0]
        if several:
            _draw_whole(panels[0], dataset, None)
        _draw_traces(panels[-1], dataset)
        title_figure(figure, "The local learning coefficient\n", _describe(dataset))
    return figure


def _describe(dataset: xr.Dataset) -> str:
    a = dataset.attrs
    return (
        f"{a.get('run', '')} · {int(a['chains'])} chains of {int(a['draws'])} draws, {int(a['burn_in'])} of them burn-in; "
        f"ε = {a['step_size']:g}, γ = {a['elasticity']:g}, nβ = {a['scale']:.0f} on {int(a['n_examples']):,} examples"
    )


def _draw_whole(axes: Axes, dataset: xr.Dataset, trajectory: xr.Dataset | None) -> None:
    steps = dataset.step.values
    start_strip(
        axes, steps, trajectory, "λ̂, 95 % interval over chains; ○: not settled or left the neighbourhood, ✕: diverged"
    )
    plot_interval(axes, steps, dataset, "coefficient", BLUE, marker="o", markersize=3)
    loose = ((dataset.settled.values == 0) | (dataset.left.values == 1)) & (dataset.diverged.values == 0)
    axes.plot(steps[loose], dataset.coefficient.values[loose], "o", markersize=7, mfc="none", mec=ORANGE)
    gone = dataset.diverged.values == 1
    axes.plot(steps[gone], np.zeros(gone.sum()), "x", color=ORANGE, markersize=7)
    _set_scale(axes)


def _draw_rows(axes: Axes, refined: xr.Dataset, by: str, trajectory: xr.Dataset | None) -> None:
    titles = {"part": "λ̂ of one layer's weights alone", "data": "λ̂ on some questions alone"}
    steps = refined.step.values
    start_strip(axes, steps, trajectory, titles[by])
    n_rows = refined.sizes["row"]
    colours = (
        ordered_colours(n_rows) if by == "part" else [CATEGORIES[index % len(CATEGORIES)] for index in range(n_rows)]
    )
    for index in range(n_rows):
        row = refined.isel(row=index)
        plot_interval(
            axes, steps, row, "coefficient", colours[index], alpha=0.1, marker="o", markersize=3,
            linestyle=DASHES[index % len(DASHES)], label=str(row[by].values),
        )  # fmt: skip
    axes.legend(loc="upper left", ncols=n_rows, fontsize=7)
    _set_scale(axes)


def _draw_traces(axes: Axes, dataset: xr.Dataset) -> None:
    """nβ (L(w) − L(w*)) along the chains: flat behind the burn-in where they have settled."""
    for index, colour in zip(choose_traces(dataset), (GREY, ORANGE, BLUE)):
        one = dataset.isel(step=index)
        for chain in one.chain.values:
            label = f"step {int(one.step):,}" if chain == one.chain.values[0] else None
            axes.plot(one.draw, one.trace.sel(chain=chain), color=colour, linewidth=0.8, alpha=0.7, label=label)
    axes.axvspan(0, int(dataset.attrs["burn_in"]), color=GREY, alpha=0.12, linewidth=0)
    axes.set_xlim(0, dataset.sizes["draw"] - 1)
    axes.set_xlabel("draw; burn-in is grey")
    axes.set_title("traces: nβ (L(w) − L(w*))", loc="left", fontsize=9)
    axes.legend(loc="upper left", ncols=N_TRACES, fontsize=7)


def choose_traces(dataset: xr.Dataset) -> list[int]:
    """The first checkpoint whose draws mostly lie above it, the one with the largest coefficient, and the last."""
    coefficient = np.nan_to_num(dataset.coefficient.values, nan=-np.inf)
    above = np.flatnonzero(np.nan_to_num(dataset.negative.values, nan=1.0) < 0.5)
    return sorted({int(above[0]) if len(above) else 0, int(coefficient.argmax()), len(coefficient) - 1})


def _set_scale(axes: Axes) -> None:
    axes.set_yscale("symlog", linthresh=LINEAR_BELOW, linscale=3)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.axhline(0, color=GREY, linewidth=0.8)
