"""Figures of AS13 and of the experiment ``learnability``: what the kernel says, beside what was learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from bindscope.measures.stats.ranks import Bounds, rank_tasks
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    GREY,
    INK,
    MUTED,
    ORANGE,
    name_ticks,
    new_figure,
    title_figure,
)
from bindscope.studies.symbols.efficiency.curves import HALF, curve_of
from bindscope.studies.symbols.kernel.define import find_task
from bindscope.studies.symbols.kernel.learnability import (
    COMMON,
    exactly,
    half_sizes,
    kernels_in,
    kernels_of,
    losses_at,
    predicted_by,
    ridge_bounds,
)

BETA = 3.0
MOST_TICKS = 6
Kernels = Mapping[str, Mapping[str, Any]]
MODELS = (("plain", "transformer", BLUE, "o"), ("both", "with identity scaling", CATEGORIES[2], "D"))


def draw_kernel_claim(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS13: ridge regression over n by task, and the n of half loss against λ and against the kernel's own n."""
    kernel, trained = results["kernel"].sel(beta=BETA), results["learnability"]
    kernels, needs = kernels_of(kernel), _needs(trained)
    with new_figure(11.4, 4.1) as figure:
        left, middle, right = figure.subplots(1, 3, width_ratios=[1.15, 1, 1])
        errors = kernel.ridge_error.mean("seed")
        curves = {task: (errors.n.values, errors.sel(task=task).values) for task in kernels}
        _draw_curves(left, curves, kernels, "ridge regression's error on unseen symbols")
        ridge = {**needs, "ridge": ridge_bounds(kernel)}
        _draw_needs(middle, kernels, ridge, "smallest", "1/λ, of the smallest eigenvalue of N")
        _draw_needs(right, kernels, ridge, "half_size", "n of half loss by the kernel, no repeated symbols")
        _draw_diagonal(right)
        _key(middle, ridge)
        title_figure(
            figure,
            "AS13 · The kernel says what can be learned",
            f"{len(kernels)} tasks, β = {BETA:g}; arrows: n known as a bound only; dashed orange: tasks whose labels N cannot hold",
        )
    return figure


def draw_learnability(dataset: xr.Dataset) -> Figure:
    """The experiment: test loss of the plain transformer over n, and at one n against λ."""
    kernels = kernels_in(dataset)
    curves = {}
    for task in kernels:
        points = curve_of(dataset, "plain", task=task)
        if len(points.points):
            curves[task] = (points.n, points.values)
    with new_figure(10.4, 4.1) as figure:
        left, right = figure.subplots(1, 2)
        _draw_curves(left, curves, kernels, "test loss of the transformer, unseen symbols")
        _draw_losses(right, kernels, losses_at(dataset))
        n_runs = int(dataset.last_loss.sel(split="test").notnull().sum())
        title_figure(
            figure,
            "Does the kernel say which templates are learned, and from how many sequences?",
            f"{n_runs} runs; arrows: n known as a bound only; dashed orange: tasks whose labels N cannot hold",
        )
    return figure


def _needs(dataset: xr.Dataset) -> dict[str, dict[str, Bounds]]:
    return {model: {task: size.bounds for task, size in half_sizes(dataset, model).items()} for model, *_ in MODELS}


def _draw_curves(axes: Axes, curves: Mapping[str, tuple[np.ndarray, np.ndarray]], kernels: Kernels, label: str) -> None:
    """A line for each task, coloured by λ."""
    known = [float(kernels[task]["smallest"]) for task in curves if kernels[task]["verdict"] == "learnable"]
    scale = LogNorm(min(known, default=1e-4), max(known, default=1.0))
    colours = ScalarMappable(scale, mpl.colormaps["viridis"].resampled(256))
    for task, (sizes, values) in curves.items():
        learnable = kernels[task]["verdict"] == "learnable"
        colour = colours.to_rgba(np.array(float(kernels[task]["smallest"]))) if learnable else ORANGE
        axes.plot(sizes, values, "-o" if learnable else "--s", color=colour, lw=1.4, ms=3.5)
    axes.axhline(HALF, color=GREY, lw=0.8, ls=":")
    axes.set_xscale("log", base=2)
    distinct = sorted({float(size) for sizes, _ in curves.values() for size in sizes})
    name_ticks(axes.xaxis, distinct if len(distinct) <= MOST_TICKS else distinct[::2])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("n, training sequences and symbols", labelpad=2)
    axes.text(0, 1.03, label, transform=axes.transAxes, fontsize=8, color=MUTED)
    bar = axes.figure.colorbar(colours, ax=axes, pad=0.02, aspect=28)
    bar.set_label("λ, smallest eigenvalue of N")
    bar.outline.set_visible(False)  # type: ignore[operator]


def _draw_needs(
    axes: Axes,
    kernels: Kernels,
    needs: Mapping[str, Mapping[str, Bounds]],
    predictor: str,
    label: str,
) -> None:
    """The n of half loss of each task against a predictor, one mark a task; arrows where only a bound is known."""
    predicted = predicted_by(kernels, predictor)
    for key, words, colour, marker in (*MODELS, ("ridge", "ridge regression", GREY, "x")):
        bounds = {task: ends for task, ends in needs.get(key, {}).items() if np.isfinite(predicted.get(task, np.inf))}
        rank = rank_tasks(predictor, predicted, bounds)
        tau = "" if rank is None else f", τ = {rank.tau:.2f} [{rank.low:.2f} to {rank.high:.2f}]"
        for index, (task, (low, high)) in enumerate(bounds.items()):
            at = high if low == 0 else low
            axes.plot(predicted[task], at, marker, color=colour, ms=5, mew=1.3, mfc="none" if key == "both" else colour,
                      label=f"{words}{tau}" if index == 0 else None)  # fmt: skip
            if low != high:
                _draw_arrow(axes, predicted[task], at, down=low == 0, colour=colour)
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_major_locator(LogLocator(10))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(label, labelpad=2)
    axes.text(0, 1.03, "n of half loss", transform=axes.transAxes, fontsize=8, color=MUTED)


def _draw_losses(axes: Axes, kernels: Kernels, losses: Mapping[str, float]) -> None:
    """The test loss of each task at one n against 1/λ, with the task's templates."""
    predicted = predicted_by(kernels, "smallest")
    known = {task: loss for task, loss in losses.items() if np.isfinite(predicted[task])}
    for index, (task, loss) in enumerate(sorted(known.items(), key=lambda each: predicted[each[0]])):
        axes.plot(predicted[task], loss, "o", color=BLUE, ms=5)
        name = find_task(task).title if len(find_task(task).templates) == 2 else task
        above = index % 2 == 0
        axes.annotate(
            name, (predicted[task], loss), xytext=(0, 6 if above else -12), textcoords="offset points",
            ha="center", fontsize=7, color=INK,
        )  # fmt: skip
    rank = rank_tasks("smallest", predicted, exactly(known))
    axes.axhline(HALF, color=GREY, lw=0.8, ls=":")
    axes.set_xscale("log")
    axes.margins(x=0.18, y=0.12)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("1/λ, of the smallest eigenvalue of N", labelpad=2)
    words = f"test loss at n = {COMMON}" + ("" if rank is None else f"; Kendall's {rank}")
    axes.text(0, 1.03, words, transform=axes.transAxes, fontsize=8, color=MUTED)


def _draw_arrow(axes: Axes, x: float, y: float, *, down: bool, colour: str) -> None:
    axes.annotate(
        "",
        (x, y / 1.6 if down else y * 1.6),
        xytext=(x, y),
        arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.0},
    )


def _draw_diagonal(axes: Axes) -> None:
    low = max(axes.get_xlim()[0], axes.get_ylim()[0])
    high = min(axes.get_xlim()[1], axes.get_ylim()[1])
    if low < high:
        axes.plot([low, high], [low, high], color=MUTED, lw=0.8, ls=":", zorder=0)


def _key(axes: Axes, needs: Mapping[str, Mapping[str, Bounds]]) -> None:
    if any(needs.values()):
        axes.set_ylim(top=8 * axes.get_ylim()[1])  # room for it
        axes.legend(loc="upper left", fontsize=7, labelspacing=0.3, handletextpad=0.3)
