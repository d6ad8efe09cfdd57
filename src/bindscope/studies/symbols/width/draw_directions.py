"""The figure of the orthogonality argument: what early updates do to training symbols, unseen ones and the identity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.plots.style import BLUE, GREY, INK, ORANGE, new_figure, set_doubling_axis, title_figure
from bindscope.studies.symbols.width.widths import last_step, mean_over_seeds, widths_of

PURPLE, SKY = "#8c5fbf", "#5aa9d6"


def draw_directions(dataset: xr.Dataset) -> Figure:
    """How much unseen symbols get, the readings behind it, and the fractions of the update in each span."""
    with new_figure(12.2, 3.9) as figure:
        first, second, third = figure.subplots(1, 3)
        draw_ratio(first, dataset)
        _draw_readings(second, dataset)
        _draw_fractions(third, dataset)
        subtitle = (
            f"n = {int(dataset.attrs['n']):,}, {dataset.sizes['seed']} seeds, mean of {dataset.sizes['layer']} layers; Δ is the change "
            f"of Σ W_V W_O, in the middle and on the right after step {last_step(dataset)}; bars: 95 % interval over seeds"
        )
        title_figure(figure, "What the first updates of a model that copies do to symbols it never saw", subtitle)
    return figure


def draw_ratio(axes: Axes, dataset: xr.Dataset) -> None:
    """An unseen symbol's reading over a training symbol's, by width, beside the prediction."""
    widths = np.array(widths_of(dataset))
    predicted = dataset.predicted_ratio.sel(model="plain").mean("seed").values
    axes.plot(widths, predicted, color=INK, lw=1, ls="--", label="predicted: m/(m + d − 1)")
    for step, marker in zip(dataset.step.values, "ov^sD"):
        label = "gradient at the start" if step == 0 else f"after step {int(step)}"
        shift = 1 + 0.05 * (list(dataset.step.values).index(step) - (dataset.sizes["step"] - 1) / 2)
        _bars(axes, dataset, "ratio", "plain", int(step), ORANGE, label, marker, shift)
    _bars(axes, dataset, "ratio", "both", last_step(dataset), BLUE, "identity scaling", "o")
    axes.set_ylim(0, 1.25)
    set_doubling_axis(axes, widths, "x")
    axes.set_xlabel("width d", labelpad=2)
    axes.set_ylabel("reading of an unseen symbol\nover that of a training symbol")
    axes.legend(loc="lower left", fontsize=7.5, labelspacing=0.3)


def _draw_readings(axes: Axes, dataset: xr.Dataset) -> None:
    kinds = (
        ("seen", ORANGE, "training symbols", "o"),
        ("unseen", PURPLE, "unseen symbols", "s"),
        ("random", SKY, "random directions", "^"),
        ("mismatched", GREY, "unseen, another's answer", "x"),
    )
    _draw_kinds(axes, dataset, kinds, "reading rᵀΔw / ‖Δ‖, plain")
    axes.axhline(0, color=INK, lw=0.7, ls=":")
    axes.legend(loc="upper right", fontsize=7.5, labelspacing=0.3)


def _draw_fractions(axes: Axes, dataset: xr.Dataset) -> None:
    kinds = (
        ("seen_fraction", ORANGE, "training symbols", "o"),
        ("head_fraction", "#b0893a", "… one head alone", "v"),
        ("unseen_fraction", PURPLE, "unseen symbols", "s"),
        ("chance_fraction", GREY, "by chance", "x"),
    )
    _draw_kinds(axes, dataset, kinds, "fraction of ‖Δ‖² in span{r wᵀ}, plain")
    axes.set_yscale("log")
    axes.legend(loc="lower left", fontsize=7.5, labelspacing=0.3)


def _draw_kinds(axes: Axes, dataset: xr.Dataset, kinds: Sequence[tuple[str, str, str, str]], label: str) -> None:
    """What the last of the steps did to the plain model, over width: each kind with its colour, name and marker."""
    for name, colour, words, marker in kinds:
        _bars(axes, dataset, name, "plain", last_step(dataset), colour, words, marker)
    set_doubling_axis(axes, np.array(widths_of(dataset)), "x")
    axes.set_xlabel("width d", labelpad=2)
    axes.set_ylabel(label)


def _bars(
    axes: Axes, dataset: xr.Dataset, name: str, model: str, step: int, colour: str, label: str, marker: str, shift: float = 1.0
) -> None:  # fmt: skip
    found = [mean_over_seeds(dataset, name, model, width, step) for width in widths_of(dataset)]
    at, values = shift * np.array(widths_of(dataset)), [each.value for each in found]
    axes.plot(at, values, marker=marker, ms=4.5, lw=1.2 if shift == 1 else 0, color=colour, label=label)
    for x, each in zip(at, found):
        if each.low is not None and each.high is not None:
            axes.plot([x, x], [each.low, each.high], color=colour, lw=1.2, alpha=0.6)
