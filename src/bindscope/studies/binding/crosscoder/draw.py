"""The figure of a crosscoder: how much of each kind of feature every checkpoint has, and where features appear."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.measures.binding.line_features import summarise_kinds
from bindscope.studies.plots.style import BLUE, CATEGORIES, GREY, MUTED, ORANGE, new_figure, title_figure

COLOURS = {"name": BLUE, "token": ORANGE, "value": CATEGORIES[2], "line": CATEGORIES[4], "none": GREY}
WORDS = {"name": "the line's name", "token": "the token", "value": "a reference's value", "line": "the line's number", "none": "none of these"}  # fmt: skip
LEAST_DRAWN = 3  # features of a kind, in every dictionary


def draw_crosscoder(results: Mapping[str, xr.Dataset]) -> Figure:
    """A column for each layer: above mean relative norms, a line for each dictionary; below how many features appear where."""
    dataset = results["crosscoder"]
    kinds = summarise_kinds(dataset)
    with new_figure(4 * dataset.sizes["layer"], 5.8) as figure:
        panels = figure.subplots(2, dataset.sizes["layer"], sharey="row", squeeze=False).T
        for (above, below), layer in zip(panels, dataset.layer.values):
            _draw_norms(above, kinds.sel(layer=layer))
            _draw_onsets(below, kinds.sel(layer=layer))
            one = dataset.sel(layer=layer)
            variance, active = float(one.explained_variance.mean()), float(one.active.mean())
            words = f"entering L{layer}: {active:.0f} features at a token, {100 * variance:.0f} % of the variance"
            above.set_title(words, fontsize=8, loc="left", color=MUTED)
        panels[0][0].set_ylabel("mean relative norm")
        panels[0][1].set_ylabel("features that appear")
        n, penalty = int(dataset.attrs["n"]), float(dataset.attrs["penalty"])
        subtitle = f"{dataset.attrs.get('run', '')} · {dataset.sizes['feature']} features, penalty {penalty:g}, {n} programs, {dataset.sizes['seed']} dictionaries"
        title_figure(figure, "Features of right-hand sides that checkpoints share, by what they tell\n", subtitle)
    return figure


def _draw_norms(axes: Axes, kinds: xr.Dataset) -> None:
    for kind, colour in COLOURS.items():
        counts = kinds["count"].sel(kind=kind).values
        if counts.min() < LEAST_DRAWN:
            continue
        for index, seed in enumerate(kinds.seed.values):
            label = f"{WORDS[kind]} ({', '.join(map(str, counts))})" if index == 0 else None
            norm = kinds.norm.sel(kind=kind, seed=seed)
            axes.plot(
                range(norm.size), norm, color=colour, linestyle=("-", "--")[index % 2], linewidth=1.4, label=label
            )
    axes.set_ylim(0, 1.45)
    axes.set_yticks([0, 0.5, 1])
    axes.legend(fontsize=7, loc="upper left", ncols=2)
    _name_checkpoints(axes, kinds.step.values)


def _draw_onsets(axes: Axes, kinds: xr.Dataset) -> None:
    """Bars of the first dictionary, by kind."""
    onsets = kinds.onset.isel(seed=0)
    width = 0.8 / len(COLOURS)
    for index, (kind, colour) in enumerate(COLOURS.items()):
        axes.bar(np.arange(kinds.sizes["step"]) + (index - 2) * width, onsets.sel(kind=kind), width, color=colour)
    _name_checkpoints(axes, kinds.step.values)
    axes.set_xlabel("checkpoint (step)")


def _name_checkpoints(axes: Axes, steps: np.ndarray) -> None:
    axes.set_xticks(range(len(steps)), [f"{int(step):,}" for step in steps], fontsize=7)
