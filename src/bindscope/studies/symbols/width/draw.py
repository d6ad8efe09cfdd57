"""Figures of AS8 and AS9, and of the experiments behind them: copying and width, and the shape of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.framework.experiments import count_runs
from bindscope.studies.plots.style import (
    BLUE,
    GREY,
    INK,
    MUTED,
    ORANGE,
    new_figure,
    ordered_colours,
    set_doubling_axis,
    set_fraction_axis,
    title_figure,
)
from bindscope.studies.symbols.published import COPY_FIRST_N, COPY_FIRST_N_MODIFIED, WIDTH_LOSS, WIDTH_N
from bindscope.studies.symbols.width.draw_directions import draw_ratio
from bindscope.studies.symbols.width.widths import (
    SOLVED,
    FirstN,
    choose_heads,
    find_first_n,
    largest_n,
    split_error,
    split_loss,
)

COLOURS = {"plain": ORANGE, "both": BLUE}
NAMES = {"plain": "plain", "both": "identity scaling"}
SETTINGS = {"depth": "layers", "heads": "heads", "rate": "learning rate", "batch": "batch size"}


def draw_copy_claim(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS8: how many symbols each width needs."""
    title = "AS8 · Wider models need more symbols to copy an unseen one"
    return _draw_copy(results["copy"], title, results["copy_directions"])


def draw_width_claim(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS9: the loss on unseen symbols by width."""
    return _draw_width(results["width"], "AS9 · Width hurts on unseen symbols")


def draw_copy(dataset: xr.Dataset) -> Figure:
    """The experiment's figure: error by n at every width, and the first n that suffices."""
    return _draw_copy(dataset, "How many symbols it takes to copy an unseen one")


def draw_width(dataset: xr.Dataset) -> Figure:
    """The experiment's figure: the loss on unseen symbols by width."""
    return _draw_width(dataset, "Same or different, by width")


def draw_shape(dataset: xr.Dataset) -> Figure:
    """The experiment's figure: the loss on unseen symbols by depth, heads, learning rate and batch size."""
    with new_figure(11.6, 3.3) as figure:
        panels: Sequence[Axes] = figure.subplots(1, len(SETTINGS), sharey=True)
        for axes, (setting, label) in zip(panels, SETTINGS.items()):
            _draw_setting(axes, dataset, setting, label)
        panels[0].set_ylabel("test loss")
        panels[0].legend(loc="best", fontsize=7.5)
        subtitle = f"{count_runs(dataset)} runs; one mark a run, lines through the mean; a loss of 1 is that of knowing nothing"
        title_figure(figure, "What the shape of model and training changes (same or different)", subtitle)
    return figure


def _draw_copy(dataset: xr.Dataset, title: str, directions: xr.Dataset | None = None) -> Figure:
    chosen = choose_heads(dataset)
    n_panels = 2 if directions is None else 3
    with new_figure(4.7 * n_panels, 3.9) as figure:
        panels = figure.subplots(1, n_panels)
        _draw_errors(panels[0], chosen)
        _draw_first_n(panels[1], chosen)
        if directions is not None:
            draw_ratio(panels[2], directions)
        subtitle = (
            f"{count_runs(chosen)} runs of {chosen.attrs.get('preset', 'copy')}, {int(chosen.heads.values[0])} heads, each when validation symbols "
            "are copied best, mean of seeds; first n with an arrow lie beyond what was trained"
        )
        if directions is not None:
            subtitle += f"; right: what the first steps teach, n = {int(directions.attrs['n']):,}"
        title_figure(figure, title, subtitle)
    return figure


def _draw_errors(axes: Axes, dataset: xr.Dataset) -> None:
    widths = np.unique(dataset.width.values).astype(int)
    for width, colour in zip(widths, ordered_colours(len(widths))):
        for model, dash in (("plain", "-"), ("both", (0, (2, 1.4)))):
            chosen = (dataset.width.values == width) & (dataset.model.values == model)
            there = dataset.isel(variant=np.flatnonzero(chosen)).sortby("n")
            if there.sizes["variant"]:
                label = f"width {width:,}" if model == "plain" else "_"
                errors = np.nanmean(split_error(there), 1)
                axes.plot(there.n.values, errors, marker="o", ms=3.5, lw=1.4, ls=dash, color=colour, label=label)  # type: ignore[arg-type]
    axes.plot([], [], ls=(0, (2, 1.4)), color=GREY, label="with identity scaling")
    axes.axhline(SOLVED, color=INK, lw=0.7, ls=":")
    set_fraction_axis(axes)
    set_doubling_axis(axes, dataset.n.values, "x")
    axes.set_xlabel("n: training symbols, and training sequences", labelpad=2)
    axes.set_ylabel("error on unseen symbols")
    axes.legend(loc="center left", bbox_to_anchor=(0, 0.42), fontsize=7.5, labelspacing=0.3)


def _draw_first_n(axes: Axes, dataset: xr.Dataset) -> None:
    widths = list(COPY_FIRST_N)
    axes.plot(widths, list(COPY_FIRST_N.values()), "s--", ms=6, mfc="none", color=ORANGE, lw=1, label="paper, plain")
    modified = [COPY_FIRST_N_MODIFIED] * len(widths)
    axes.plot(widths, modified, "s--", ms=6, mfc="none", color=BLUE, lw=1, label="paper, identity scaling (at most)")
    sizes = [*COPY_FIRST_N.values(), COPY_FIRST_N_MODIFIED, *dataset.n.values]
    for model, colour in COLOURS.items():
        found = find_first_n(dataset, model)
        if found:
            _mark_first_n(axes, found, colour, f"ours, {NAMES[model]}")
            widths += [first.width for first in found]
    set_doubling_axis(axes, np.array(widths), "x")
    set_doubling_axis(axes, np.array([*sizes, 2 * max(sizes)]), "y")
    axes.set_ylim(min(sizes) / 2, 3 * max(sizes))
    axes.set_xlabel("width", labelpad=2)
    axes.set_ylabel(f"first n with an error below {SOLVED:g}")
    axes.legend(loc="upper left", fontsize=7.5, labelspacing=0.3)


def _mark_first_n(axes: Axes, found: Sequence[FirstN], colour: str, label: str) -> None:
    """A disc where an n suffices; a triangle at the end of what was trained where it lies beyond."""
    shown = [first.n if first.reached else first.largest for first in found]
    axes.plot([first.width for first in found], shown, color=colour, lw=1.6, label=label, marker="o", ms=5)
    for first, height in zip(found, shown):
        known = [n for n in first.by_seed if n < np.inf]
        if known and len(first.by_seed) > 1:
            axes.plot([first.width] * 2, [min(known), max(known)], color=colour, lw=4, alpha=0.25)
        if not (first.reached and first.below):
            up = 1 if not first.reached else -1
            axes.annotate(
                "", (first.width, height * 1.7**up), (first.width, height),
                arrowprops={"arrowstyle": "->", "color": colour, "lw": 1.2},
            )  # fmt: skip


def _draw_width(dataset: xr.Dataset, title: str) -> Figure:
    chosen = largest_n(dataset)
    widths, losses = chosen.width.values.astype(int), split_loss(chosen)
    with new_figure(6.2, 3.9) as figure:
        axes = figure.subplots()
        paper = list(WIDTH_LOSS)
        label = f"paper, n = {WIDTH_N:,}"
        axes.plot(paper, list(WIDTH_LOSS.values()), "s--", ms=6, mfc="none", color=ORANGE, lw=1, label=label)
        axes.plot(widths, np.nanmean(losses, 1), color=ORANGE, label=f"ours, n = {int(chosen.n.values[0]):,}")
        axes.plot(np.repeat(widths, losses.shape[1]), losses.ravel(), "o", ms=4.5, color=ORANGE, alpha=0.75)
        trained = np.nanmean(split_loss(chosen, "train"), 1)
        axes.plot(widths, trained, color=GREY, ls=(0, (1.5, 1.2)), label="ours, training sequences")
        axes.axhline(1, color=INK, lw=0.7, ls=":")
        axes.text(widths[0], 1.01, "knows nothing", fontsize=7.5, color=MUTED, va="bottom")
        set_doubling_axis(axes, np.array([*widths, *paper]), "x")
        axes.set_ylim(bottom=-0.03)
        axes.set_xlabel("width", labelpad=2)
        axes.set_ylabel("test loss")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 0.08), fontsize=7.5)
        title_figure(
            figure,
            title,
            f"{count_runs(chosen)} runs, {int(chosen.heads.values[0])} heads; one mark a run, lines through the mean",
        )
    return figure


def _draw_setting(axes: Axes, dataset: xr.Dataset, setting: str, label: str) -> None:
    values: list[float] = []
    for model, colour in COLOURS.items():
        chosen = (dataset.setting.values == setting) & (dataset.model.values == model)
        there = dataset.isel(variant=np.flatnonzero(chosen)).sortby("value")
        if not there.sizes["variant"]:
            continue
        losses, at = split_loss(there), there.value.values.astype(float)
        values += at.tolist()
        axes.plot(at, np.nanmean(losses, 1), color=colour, label=f"{NAMES[model]}, n = {int(there.n.values[0]):,}")
        axes.plot(np.repeat(at, losses.shape[1]), losses.ravel(), "o", ms=4, color=colour, alpha=0.75)
    axes.axhline(1, color=INK, lw=0.7, ls=":")
    axes.set_ylim(bottom=0)
    if values:
        set_doubling_axis(axes, np.array(values), "x")
    axes.set_xlabel(label, labelpad=2)
