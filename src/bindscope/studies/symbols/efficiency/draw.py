"""Figures of curves over n, of claims and of experiments: ours as filled marks and lines with their seeds' range, the paper's points as open marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from bindscope.studies.framework.experiments import count_runs
from bindscope.studies.plots.style import CATEGORIES, DASHES, GREY, INK, MUTED, new_figure, title_figure
from bindscope.studies.symbols.efficiency.curves import (
    FEWER,
    HALF,
    MODEL_NAMES,
    PAPER,
    Curve,
    curve_of,
    is_baseline,
    measure_of,
    models_of,
    task_of,
)
from bindscope.studies.symbols.published import published

TRANSFORMERS = tuple(model for model in MODEL_NAMES if not is_baseline(model))
BASELINES = tuple(model for model in MODEL_NAMES if is_baseline(model))
MARKERS = ("o", "s", "^", "D", "v", "P")


def draw_claim(title: str, models: Sequence[str] | None, results: Mapping[str, xr.Dataset]) -> Figure:
    """The figure of a claim: these models' curves in the first experiment that it reads, or all."""
    dataset = next(iter(results.values()))
    return draw_models(dataset, title, models)


def draw_curves(dataset: xr.Dataset) -> Figure:
    """The figure of an experiment: every model over n, transformers beside simpler networks."""
    return draw_models(dataset, str(dataset.attrs.get("question", "How many training sequences are enough?")))


def draw_models(dataset: xr.Dataset, title: str, models: Sequence[str] | None = None) -> Figure:
    """Curves of these models, or of all; where there are many, transformers and simpler networks side by side.

    >>> draw_models(dataset, "AS2 · Identity scaling saves sequences", ("plain", "both"))
    """
    known = {*models_of(dataset, FEWER), *models_of(dataset, PAPER)}
    chosen = [model for model in MODEL_NAMES if model in known and (models is None or model in models)]
    groups = [[model for model in chosen if model in part] for part in (TRANSFORMERS, BASELINES)]
    panels = [group for group in groups if group] if len(chosen) > len(CATEGORIES) else [chosen]
    with new_figure(1.8 + 4.6 * len(panels), 4.0) as figure:
        grid = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, group in zip(grid, panels):
            _draw_panel(axes, dataset, group)
        grid[0].set_ylim(0, max(1.05, *(axes.dataLim.y1 * 1.04 for axes in grid)))
        grid[0].set_ylabel(_value_label(dataset), labelpad=2)
        title_figure(figure, title, _subtitle(dataset))
    return figure


def _draw_panel(axes: Axes, dataset: xr.Dataset, models: Sequence[str]) -> None:
    """A model has the same colour, mark and dash in every figure, where no other kind of network is beside it."""
    mixed = any(map(is_baseline, models)) and not all(map(is_baseline, models))
    for model in models:
        index = (BASELINES.index(model) + mixed) if is_baseline(model) else TRANSFORMERS.index(model)
        colour, marker = CATEGORIES[index % len(CATEGORIES)], MARKERS[index % len(MARKERS)]
        dash = DASHES[index % len(DASHES)]
        if model in models_of(dataset, FEWER):
            _draw_curve(axes, curve_of(dataset, model, FEWER), colour, marker, dash, MODEL_NAMES[model])
        if model in models_of(dataset, PAPER) and not is_baseline(model):
            label = f"{MODEL_NAMES[model]}, {PAPER} heads"
            _draw_curve(axes, curve_of(dataset, model, PAPER), colour, marker, dash, label, width=0.9)
        if points := published(task_of(dataset).name, model):
            axes.plot(
                list(points), list(points.values()), marker, color=colour, markerfacecolor="none", ms=7.5, mew=1.3,
                label=f"{MODEL_NAMES[model]}, the paper's", clip_on=False, zorder=4,
            )  # fmt: skip
    _finish(axes, dataset)


def _draw_curve(
    axes: Axes, curve: Curve, colour: str, marker: str, dash: object, label: str, width: float = 1.7
) -> None:
    """A line through the means, and a bar from the least to the most of the seeds."""
    axes.plot(
        curve.n, curve.values, marker=marker, ms=4.5, color=colour, linestyle=dash, lw=width, label=label, clip_on=False
    )  # type: ignore[arg-type]
    for point in curve.points:
        axes.plot([point.n] * 2, [min(point.seeds), max(point.seeds)], color=colour, lw=1.1, alpha=0.6)


def _finish(axes: Axes, dataset: xr.Dataset) -> None:
    measure = measure_of(dataset)
    axes.set_xscale("log", base=2)
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(base=2 if high / low < 2**10 else 4, numticks=20))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda n, _: _format_n(n)))
    axes.set_xlabel("n, training symbols and sequences", labelpad=2)
    nothing = 1.0 if measure == "loss" else HALF
    axes.axhline(nothing, color=GREY, lw=0.8, linestyle=(0, (2, 2)), zorder=1)
    words = "knowing nothing" if measure == "loss" else "guessing between two"
    axes.text(
        0.995, nothing, words, transform=axes.get_yaxis_transform(), fontsize=7, color=MUTED, va="bottom", ha="right"
    )
    handles, labels = axes.get_legend_handles_labels()
    open_mark = Line2D([], [], marker="o", color=INK, markerfacecolor="none", linestyle="none", ms=6)
    kept = [(handle, label) for handle, label in zip(handles, labels) if not label.endswith("the paper's")]
    if len(kept) < len(handles):
        kept.append((open_mark, "open: the paper's"))
    axes.legend(
        [handle for handle, _ in kept], [label for _, label in kept], loc="upper left", bbox_to_anchor=(1.0, 1.0),
        handlelength=2.4, fontsize=7.5, labelspacing=0.45,
    )  # fmt: skip


def _value_label(dataset: xr.Dataset) -> str:
    return "test loss (unseen symbols)" if measure_of(dataset) == "loss" else "error (unseen symbols)"


def _subtitle(dataset: xr.Dataset) -> str:
    n_runs, n_seeds = count_runs(dataset), dataset.sizes["seed"]
    seeds = f"{n_seeds} seeds" if n_seeds > 1 else "one seed"
    return f"{n_runs} runs of {dataset.attrs['preset']}, {seeds}; lines: means; bars: range of seeds"


def _format_n(n: float) -> str:
    return f"{n / 1024:.0f}k" if n >= 16384 else f"{n:,.0f}"
