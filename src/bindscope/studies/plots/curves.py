"""Curves over training, and the panels made of them that several families share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from bindscope.studies.plots.style import CATEGORIES, DASHES, place_legend_above, set_fraction_axis, set_log_axis

SPLIT_NAMES: Mapping[str, str] = {
    "tr": "as in training",
    "add": "held-out sum",
    "var": "in a new position",
    "var1": "one in a new position",
    "var2": "both",
}
LEAST_LOSS = 1e-6  # what is drawn for a loss that was recorded, with six decimals, as 0
MARK_POINTS_BELOW = 15  # curves with fewer evaluations show each as a dot


@dataclass(frozen=True)
class Panel:
    """One chart: a short name for files and ids, what it shows in a few words, and how to draw it."""

    name: str
    title: str
    subtitle: str
    draw: Callable[[Axes], None]
    shaded: bool = True  # the phases show through


def loss_panel(dataset: xr.Dataset) -> Panel:
    units = dataset.split_loss.attrs["units"]
    return Panel("loss", "Loss", f"{units}, logarithmic", lambda axes: _draw_losses(axes, dataset))


def draw_splits(axes: Axes, dataset: xr.Dataset, splits: Sequence[str]) -> None:
    for index, split in enumerate(splits):
        label = SPLIT_NAMES.get(str(split)[1:], str(split)) if str(split)[0].isdigit() else str(split)
        draw_curve(axes, dataset, split, CATEGORIES[index % len(CATEGORIES)], label, index)
    set_fraction_axis(axes)
    place_legend_above(axes)


def _draw_losses(axes: Axes, dataset: xr.Dataset) -> None:
    splits = dataset.split.values
    for index, split in enumerate(splits):
        values = np.maximum(dataset.split_loss.sel(split=split).values, LEAST_LOSS)
        colour, dash = CATEGORIES[index % len(CATEGORIES)], DASHES[index // len(CATEGORIES) + index % len(DASHES) // 3]
        plot_values(axes, dataset, values, color=colour, label=str(split), linestyle=dash)
    set_log_axis(axes)
    if len(splits) > 5:
        axes.legend(loc="upper right", ncols=3, handlelength=1.7, columnspacing=1.2)
    else:
        place_legend_above(axes)


def draw_curve(axes: Axes, dataset: xr.Dataset, split: str, colour: str, label: str, index: int) -> None:
    chosen = dataset.sel(split=split)
    low, high = chosen.split_accuracy_low.values, chosen.split_accuracy_high.values
    axes.fill_between(dataset.step.values, low, high, color=colour, alpha=0.2, linewidth=0)
    plot_values(
        axes, dataset, chosen.split_accuracy.values, color=colour, label=label, linestyle=DASHES[index % len(DASHES)]
    )


def plot_values(axes: Axes, dataset: xr.Dataset, values: np.ndarray, **style: object) -> None:
    marker = "o" if dataset.sizes["step"] < MARK_POINTS_BELOW else ""
    axes.plot(dataset.step.values, values, marker=marker, markersize=3.5, clip_on=False, **style)  # type: ignore[arg-type]
