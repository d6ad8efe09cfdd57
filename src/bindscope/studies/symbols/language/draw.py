"""Figures of language modelling: perplexity over training, at its end, and how it differs from the plain model's."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from bindscope.studies.plots.experiment_charts import Chart, draw_charts, draw_seed_lines, spread_marks, variant_colours
from bindscope.studies.plots.style import GREY, INK, MUTED, place_legend_above, set_log_axis, set_step_axis
from bindscope.studies.symbols.language.define import NAME, PLAIN
from bindscope.studies.symbols.language.perplexities import compare_with_plain
from bindscope.studies.symbols.published import PERPLEXITIES


def draw_language_claim(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS12."""
    return draw_language(results[NAME])


def draw_language(dataset: xr.Dataset) -> Figure:
    n_tokens = f"{int(dataset.test_tokens):,} tokens"
    return draw_charts(
        dataset,
        (
            Chart("Perplexity over training", "windows of the validation text; a line a seed", _draw_training),
            Chart("On the whole test text", f"{n_tokens}; a mark a seed, 95 % over blocks of text", _draw_ends),
            Chart("Against the plain model", "of the same seed; bar: mean, 95 % over seeds", _draw_changes),
        ),
        height=3.6,
    )


def _draw_training(axes: Axes, dataset: xr.Dataset) -> None:
    curves = dataset.split_perplexity.sel(split="validation")
    for index, (name, colour) in enumerate(variant_colours(dataset).items()):
        draw_seed_lines(axes, curves.sel(variant=name), colour, name, index)
    set_step_axis(axes, dataset.step.values, "linear")
    set_log_axis(axes)
    axes.set_ylabel("perplexity per token")
    place_legend_above(axes)


def _draw_ends(axes: Axes, dataset: xr.Dataset) -> None:
    names = list(variant_colours(dataset))
    for row, (name, colour) in enumerate(variant_colours(dataset).items()):
        known = dataset.sel(variant=name).dropna("seed", subset=["test_perplexity"])
        offsets = spread_marks(known.sizes["seed"], 0.2, 0.6)
        for offset, seed in zip(offsets, known.seed.values):
            cell = known.sel(seed=seed)
            ends = [float(cell.test_perplexity_low), float(cell.test_perplexity_high)]
            axes.plot(ends, [row + offset] * 2, color=colour, lw=1.1, alpha=0.55)
            axes.plot([float(cell.test_perplexity)], [row + offset], "o", color=colour, ms=4.5)
    _label_rows(axes, names)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.set_xlabel("perplexity per token", labelpad=2)


def _draw_changes(axes: Axes, dataset: xr.Dataset) -> None:
    """Relative differences, so that the paper's can stand beside them."""
    names, colours = list[str](), variant_colours(dataset)
    for name in (name for name in colours if name != PLAIN):
        paired = compare_with_plain(dataset, name)
        if paired is None:
            continue
        row = len(names)
        names.append(name)
        axes.plot(
            100 * paired.changes,
            row + spread_marks(len(paired.seeds), 0.2, 0.6),
            "o",
            color=colours[name],
            ms=4,
            alpha=0.6,
        )
        mean = 100 * float(paired.changes.mean())
        if len(paired.seeds) > 1:
            low, high = paired.change_interval
            axes.plot([100 * low, 100 * high], [row, row], color=colours[name], lw=5, alpha=0.3, solid_capstyle="butt")
        axes.plot([mean, mean], [row - 0.28, row + 0.28], color=INK, lw=1.4)
        words, at = f"{round(mean, 2) + 0.0:+.2f} %", (mean, row - 0.3)
        axes.annotate(words, at, xytext=(0, 3), textcoords="offset points", ha="center", fontsize=8)
    published = 100 * (PERPLEXITIES[1] / PERPLEXITIES[0] - 1)
    names.append("paper: both,\nGPT-2, WikiText-2")
    row = len(names) - 1
    axes.plot([published], [row], marker="D", color=GREY, ms=5)
    axes.annotate(
        f"{published:+.1f} % (from memory)", (published, row), xytext=(7, 0), textcoords="offset points", va="center",
        fontsize=8, color=MUTED,
    )  # fmt: skip
    axes.axvline(0, color=INK, lw=0.8)
    _label_rows(axes, names)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    axes.set_xlabel("change of test perplexity", labelpad=2)


def _label_rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
