"""Figures of VB8 and VB12: runs beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.plots.style import (
    BLUE,
    DASHES,
    MUTED,
    ORANGE,
    new_figure,
    ordered_colours,
    place_legend_above,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)

WEIGHTINGS = (
    ("cubic", BLUE, "-"),
    ("uniform", ORANGE, "-"),
    ("cubic-as-drawn", BLUE, DASHES[1]),
    ("uniform-as-drawn", ORANGE, DASHES[1]),
)  # variant, colour, dashes
Curve = tuple[xr.Dataset, str, object, str | None]  # a run, its colour, its dashes and its label


def draw_seeds(results: Mapping[str, xr.Dataset]) -> Figure:
    """Accuracy and strategy of every seed over training."""
    dataset = results["seeds"]
    n = dataset.sizes["seed"]
    curves = [
        (dataset.sel(seed=seed), colour, DASHES[index % len(DASHES)], str(seed))
        for index, (seed, colour) in enumerate(zip(dataset.seed.values, ordered_colours(n)))
    ]
    subtitle = f"{n} {'seed' if n == 1 else 'seeds'} of {dataset.attrs['run']}"
    return _draw_runs(dataset, curves, "VB8 · The same phases in every seed", subtitle, legend="seed")


def draw_weighting(results: Mapping[str, xr.Dataset]) -> Figure:
    """Strategy of runs with cubic and with uniform weights, depths balanced or as drawn, over training."""
    dataset = results["weighting"]
    n = dataset.sizes["seed"]
    curves = [
        (dataset.sel(variant=variant, seed=seed), colour, dash, variant if index == 0 else None)
        for variant, colour, dash in WEIGHTINGS
        if variant in dataset.variant.values
        for index, seed in enumerate(dataset.seed.values)
    ]
    subtitle = f"{n} {'seed' if n == 1 else 'seeds'} of {dataset.attrs['preset']} with each weighting"
    return _draw_runs(dataset, curves, "VB12 · Chains extended uniformly instead of cubically", subtitle)


def _draw_runs(
    dataset: xr.Dataset, curves: Sequence[Curve], title: str, subtitle: str, legend: str | None = None
) -> Figure:
    with new_figure(9.6, 3.3) as figure:
        left, right = figure.subplots(1, 2)
        for cell, colour, dash, label in curves:
            _draw_curve(left, cell, "accuracy", colour, dash, label)
            _draw_curve(right, cell, "follows_chain", colour, dash, label)
        _finish(left, dataset, "right answers")
        _finish(right, dataset, "misleading programs answered by the chain")
        place_legend_above(left, title=legend)
        title_figure(figure, title, subtitle)
    return figure


def _draw_curve(axes: Axes, cell: xr.Dataset, name: str, colour: str, dash: object, label: str | None) -> None:
    known = np.isfinite(cell[name].values)
    if known.any():
        steps = cell.step.values[known]
        axes.plot(steps, cell[name].values[known], color=colour, linestyle=dash, label=label)  # type: ignore[arg-type]


def _finish(axes: Axes, dataset: xr.Dataset, title: str) -> None:
    set_step_axis(axes, dataset.step.values)
    set_fraction_axis(axes)
    axes.text(1, 1.03, title, transform=axes.transAxes, fontsize=9, ha="right", color=MUTED)
