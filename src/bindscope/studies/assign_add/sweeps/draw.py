"""Figures of AA2 and AA3: accuracy along a sweep with the fitted threshold, and how the runs learned."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from bindscope.studies.assign_add.sweeps.swept import Curve, Sweep, run_values, sweep_of, threshold_of
from bindscope.studies.framework.experiments import count_runs
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    GREY,
    INK,
    MUTED,
    ORANGE,
    new_figure,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)

LOG_FROM = 20  # colours are logarithmic where the largest value is this many times the smallest
LABEL_LEFT_FROM = 0.65  # thresholds this far right are labelled above the curve's foot, others beside its head


def draw_claim(name: str, sweep: Sweep, results: Mapping[str, xr.Dataset]) -> Figure:
    """AA2: sums of held-out pairs by the fraction of pairs trained on. AA3: sums of two variables by their frequency."""
    return draw_sweep(results[sweep.experiment], f"{name} · {sweep.title}")


def draw_sweep(dataset: xr.Dataset, title: str = "") -> Figure:
    """Every run at the end of its training with the fitted curves; and the asked accuracy over training."""
    sweep = sweep_of(dataset)
    with new_figure(10.4, 3.9) as figure:
        left, right = figure.subplots(1, 2)
        _draw_ends(left, dataset, sweep)
        _draw_training(right, dataset, sweep)
        subtitle = (
            f"{count_runs(dataset)} runs of {dataset.attrs['preset']}, {dataset.sizes['variant']} values, "
            f"{float(dataset.last_step.max()):,.0f} steps; left: the end of training, one mark a run; "
            "band: 95 % interval of the threshold"
        )
        title_figure(figure, title or sweep.title, subtitle)
    return figure


def _draw_ends(axes: Axes, dataset: xr.Dataset, sweep: Sweep) -> None:
    for curve, colour in zip(sweep.trained, (GREY, CATEGORIES[3])):
        _draw_runs(axes, dataset, sweep, curve, colour, "x")
    _draw_runs(axes, dataset, sweep, sweep.beside, ORANGE, "D")
    _draw_runs(axes, dataset, sweep, sweep.asked, BLUE, "o")
    for curve, colour, dash in ((sweep.beside, ORANGE, (0, (5, 1.5))), (sweep.asked, BLUE, "-")):
        _draw_fit(axes, dataset, sweep, curve, colour, dash)
    fitted = threshold_of(dataset, sweep, sweep.asked)
    if fitted is not None:
        axes.axvspan(fitted.low, fitted.high, color=BLUE, alpha=0.14, lw=0)
        axes.axvline(fitted.value, color=INK, lw=0.9)
        left = fitted.value > LABEL_LEFT_FROM
        axes.annotate(
            f"threshold {fitted.value:.2f} [{fitted.low:.2f}–{fitted.high:.2f}]",
            (fitted.low, 0.9) if left else (fitted.high, 0.06),
            xytext=(-4 if left else 4, 0), textcoords="offset points", ha="right" if left else "left", fontsize=8,
        )  # fmt: skip
    set_fraction_axis(axes)
    axes.set_xlim(0, 1)
    axes.set_xlabel(sweep.label, labelpad=2)
    axes.legend(loc="lower right", bbox_to_anchor=(1.01, 0.1), fontsize=7.5, labelspacing=0.35, handletextpad=0.3)


def _draw_runs(axes: Axes, dataset: xr.Dataset, sweep: Sweep, curve: Curve, colour: str, marker: str) -> None:
    values, accuracies = run_values(dataset, sweep).ravel(), curve.accuracies(dataset).ravel()
    axes.plot(values, accuracies, marker, ms=4, mew=1, color=colour, alpha=0.75, label=curve.label, clip_on=False)


def _draw_fit(axes: Axes, dataset: xr.Dataset, sweep: Sweep, curve: Curve, colour: str, dash: object) -> None:
    fitted = threshold_of(dataset, sweep, curve)
    if fitted is not None:
        swept = dataset[sweep.coordinate].values
        at = np.linspace(swept.min(), swept.max(), 300)
        axes.plot(at, fitted.curve(at), color=colour, linestyle=dash, lw=1.4)  # type: ignore[arg-type]


def _draw_training(axes: Axes, dataset: xr.Dataset, sweep: Sweep) -> None:
    swept = dataset[sweep.coordinate].values
    scale = LogNorm if swept.max() > LOG_FROM * swept.min() else Normalize
    colours = ScalarMappable(scale(float(swept.min()), float(swept.max())), mpl.colormaps["viridis_r"])
    for name, value in zip(dataset.variant.values, swept):
        for seed in dataset.seed.values:
            curve = sweep.asked.over_training(dataset.sel(variant=name, seed=seed))
            if len(curve):
                axes.plot(curve.step, curve, color=colours.to_rgba(value), lw=0.9, alpha=0.85)
    set_fraction_axis(axes)
    set_step_axis(axes, dataset.step.values, "linear")
    axes.text(0, 1.03, f"sums of {sweep.asked.label} over training", transform=axes.transAxes, fontsize=8, color=MUTED)
    bar = axes.figure.colorbar(colours, ax=axes, pad=0.02, aspect=28)
    bar.set_label(sweep.label)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.outline.set_visible(False)  # type: ignore[operator]
