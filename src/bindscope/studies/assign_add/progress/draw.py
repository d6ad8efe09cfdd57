"""The figure of the seven progress measures over training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.measures.arithmetic.progress import ALL_SPLITS, BESIDE, CONTROL, SAMPLED_MEASURES, WEIGHT_MEASURES
from bindscope.studies.assign_add.learning.panels import mark_spikes
from bindscope.studies.plots.style import (
    CATEGORIES,
    DASHES,
    INK,
    MUTED,
    new_figure,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)

if TYPE_CHECKING:
    from bindscope.measures.arithmetic.spikes import Spike

MEASURE_NAMES: Mapping[str, str] = {
    "ov2_mlp2_accuracy": "adds all pairs by itself (ov2_mlp2_accuracy)",
    "qk1_num_to_prev_var": "positions prefer the one before (qk1_num_to_prev_var)",
    "qk2_ov1_var_identity": "variables match themselves (qk2_ov1_var_identity)",
    "attn_l1_equal_to_operands": "= attends to both operands, layer 1 (attn_l1_equal_to_operands)",
    "attn_l1_num_to_prev": "numbers attend one back, layer 1 (attn_l1_num_to_prev)",
    "attn_l2_equal_to_values": "= attends to both values, layer 2 (attn_l2_equal_to_values)",
    "probe_l1_var_from_num": "name read off the number (probe_l1_var_from_num)",
    ALL_SPLITS: "… to both operands in all nine splits",
    CONTROL: "… fitted to shuffled names",
}


def draw_progress(dataset: xr.Dataset, spikes: Sequence[Spike] = ()) -> Figure:
    """Measures of weights on the left, of sequences on the right, with the spikes of the run marked in both."""
    with new_figure(10.4, 4.6) as figure:
        panels = (("In the weights", WEIGHT_MEASURES), ("Over sequences", (*SAMPLED_MEASURES, *BESIDE)))
        for index, (title, names) in enumerate(panels, start=1):
            axes = figure.add_subplot(1, 2, index)
            _draw_measures(axes, dataset, names)
            mark_spikes(axes, spikes)
            axes.set_title(title, loc="left", fontsize=9.5, fontweight="bold", color=INK)
        n = int(dataset.attrs.get("n_per_split", 0))
        words = f"{n} sequences from each split, 95 % Wilson intervals"
        title_figure(figure, "Progress measures", f"{dataset.attrs.get('run', '')} · {words}")
    return figure


def _draw_measures(axes: Axes, dataset: xr.Dataset, names: Sequence[str]) -> None:
    steps = dataset.step.values
    set_step_axis(axes, steps, "linear")
    for index, name in enumerate(names):
        colour = MUTED if name in BESIDE else CATEGORIES[index % len(CATEGORIES)]
        if f"{name}_low" in dataset:
            low, high = dataset[f"{name}_low"].values, dataset[f"{name}_high"].values
            axes.fill_between(steps, low, high, color=colour, alpha=0.18, linewidth=0)
        marker = "o" if len(steps) < 40 else ""
        axes.plot(
            steps,
            dataset[name].values,
            color=colour,
            linestyle=DASHES[index % len(DASHES)],
            marker=marker,
            markersize=3,
            linewidth=1 if name in BESIDE else 1.8,
            label=MEASURE_NAMES[name],
            clip_on=False,
        )
    set_fraction_axis(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14), borderaxespad=0)
