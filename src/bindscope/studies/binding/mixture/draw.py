"""Figures of the mixture: the accounts' weights through training, and at one checkpoint layer by layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.measures.binding.mixture.likelihood import ACCOUNTS
from bindscope.measures.binding.mixture.reading import END, POSITIONS, pointer_layer
from bindscope.measures.binding.phases import PHASES
from bindscope.studies.plots.over_training import plot_over_steps, shade_phases
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    GREY,
    INK,
    MUTED,
    ORANGE,
    new_figure,
    place_legend_above,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)

COLOURS = dict(zip(ACCOUNTS, (CATEGORIES[2], BLUE, CATEGORIES[3], ORANGE, CATEGORIES[5], "#c9ced6")))
CURVES = ("early", "lexical", "positional", "reflexive")
WORDS = {
    "positional": "positional: the source's line",
    "lexical": "lexical: the source's name",
    "reflexive": "reflexive: the source's value",
    "early": "early: lines 1 and 2",
    "unchanged": "unchanged",
    "other": "other",
}


def draw_mixture(results: Mapping[str, xr.Dataset]) -> Figure:
    """Four accounts through training where the question is still a pointer; then where it has been answered; and the fit."""
    dataset = results["mixture"]
    end, layer = dataset.sel(position=END), pointer_layer(dataset)
    answered = min(layer + 1, dataset.sizes["layer"] - 1)
    with new_figure(9.8, 6.6) as figure:
        panels = figure.subplots(2, 2)
        for axes, at, words in (
            (panels[0, 0], layer, "the last layer it enters as a pointer"),
            (panels[0, 1], answered, "one layer on"),
        ):
            _draw_curves(axes, end.sel(layer=at), results)
            axes.set_title(f"entering layer {at}, {words}", fontsize=9, loc="left", color=MUTED, pad=22)
        place_legend_above(panels[0, 0])
        _draw_fit(panels[1, 0], end.sel(layer=layer), results)
        _draw_layers(panels[1, 1], dataset.isel(step=-1), END)
        panels[1, 1].set_title(f"all layers at step {int(dataset.step[-1]):,}", fontsize=9, loc="left", color=MUTED)
        subtitle = (
            f"{dataset.attrs.get('run', '')} · hash, query and colon taken from another program of the same layout · "
            f"{int(dataset.attrs['n'])} pairs asked directly · bands {dataset.attrs['interval']}"
        )
        title_figure(figure, "What a question is looked up by, through training\n", subtitle)
    return figure


def draw_checkpoint(dataset: xr.Dataset) -> Figure:
    """The weights at one checkpoint: a panel for each patched position, a bar for each layer."""
    with new_figure(10.4, 1.6 + 0.34 * dataset.sizes["layer"]) as figure:
        panels = figure.subplots(1, len(POSITIONS), sharey=True)
        for axes, position in zip(panels, POSITIONS):
            _draw_layers(axes, dataset, position)
            axes.set_title(f"patched at {position}", fontsize=9, loc="left", color=MUTED, pad=22)
        place_legend_above(panels[0])
        where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}"
        n, depth = int(dataset.attrs["n"]), int(dataset.attrs["depth"])
        title_figure(
            figure, "What a question is looked up by, layer by layer\n", f"{where} · {n} pairs of depth {depth}"
        )
    return figure


def _draw_curves(axes: Axes, dataset: xr.Dataset, results: Mapping[str, xr.Dataset]) -> None:
    set_step_axis(axes, dataset.step.values)
    shade_phases(axes, results, PHASES)
    for account in CURVES:
        plot_over_steps(axes, dataset.sel(account=account), "weight", COLOURS[account], account)
    set_fraction_axis(axes)
    axes.set_ylabel("weight")


def _draw_fit(axes: Axes, dataset: xr.Dataset, results: Mapping[str, xr.Dataset]) -> None:
    """How far the fit is from answers that it was not fitted to, beside chance and beside poorer fits."""
    set_step_axis(axes, dataset.step.values)
    shade_phases(axes, results, PHASES)
    for account in ("lexical", "early", "positional"):
        axes.plot(dataset.step, dataset.without.sel(account=account), color=COLOURS[account], linewidth=1.1,
                  linestyle="--", label=f"without {account}")  # fmt: skip
    axes.plot(dataset.step, dataset.distance, color=INK, label="the fit")
    axes.plot(dataset.step, dataset.floor, color=GREY, linestyle=":", label="noise floor")
    axes.set_ylim(0, 1)
    axes.set_ylabel("distance of the fit (Jensen–Shannon)")
    axes.legend(loc="upper left", fontsize=7.5)


def _draw_layers(axes: Axes, dataset: xr.Dataset, position: str) -> None:
    """A stacked bar for each layer, from what enters the first to what leaves the last."""
    rows, left = np.arange(dataset.sizes["layer"]), np.zeros(dataset.sizes["layer"])
    for account in ACCOUNTS:
        width = dataset.weight.sel(position=position, account=account).values
        axes.barh(rows, width, left=left, color=COLOURS[account], height=0.8, label=account)
        left = left + width
    names = [*(f"L{layer}" for layer in rows[:-1]), "end"]
    axes.set_yticks(rows, names, fontsize=7.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel("weight")
    axes.grid(axis="y", visible=False)
