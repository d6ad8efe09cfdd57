"""Figure of circuits of edges through training."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr
from matplotlib.figure import Figure

from bindscope.measures.binding.phases import PHASES
from bindscope.studies.plots.over_training import plot_over_steps, shade_phases
from bindscope.studies.plots.style import (
    BLUE,
    GREY,
    MUTED,
    new_figure,
    ordered_colours,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)


def draw_edges(results: Mapping[str, xr.Dataset]) -> Figure:
    """Faithfulness over size, a curve a checkpoint; how many edges are needed; what the last circuit's edges carried."""
    dataset = results["edges"]
    about = dataset.attrs
    with new_figure(12, 3.6) as figure:
        by_size, needed, carried = figure.subplots(1, 3)
        for step, colour in zip(dataset.step.values, ordered_colours(dataset.sizes["step"])):
            by_size.plot(dataset["size"], dataset.faithfulness.sel(step=step), color=colour, linewidth=1.4, label=f"{step:,}")  # fmt: skip
        last = dataset.isel(step=-1)
        by_size.fill_between(dataset["size"], last.random_least, last.random_most, color=GREY, alpha=0.5, linewidth=0)
        by_size.set_xscale("log")
        by_size.set_xlabel("edges in the circuit")
        by_size.set_ylim(-0.3, 1.3)
        by_size.legend(title="step", fontsize=6.5, title_fontsize=7)
        for axes in (needed, carried):
            set_step_axis(axes, dataset.step.values)
            shade_phases(axes, results, PHASES)
        plot_over_steps(needed, dataset, "needed", BLUE, "needed", marker="o", markersize=3)
        carried.plot(dataset.step, dataset.carried, color=BLUE, marker="o", markersize=3)
        needed.set_ylim(bottom=0)
        carried.axhline(float(about["strongest"]), color=GREY, linestyle=":", linewidth=1)
        set_fraction_axis(carried)
        words = {
            by_size: "faithfulness (grey: random circuits at the last step)",
            needed: f"edges needed for {100 * float(about['least']):.0f} %",
            carried: "attribution on the last circuit's edges (dotted: chance)",
        }
        for axes, text in words.items():
            axes.set_title(text, loc="left", fontsize=8.5, color=MUTED)
        subtitle = f"{about.get('run', '')} · {int(about['n'])} pairs of depth {int(about['depth'])}, half to find edges and half to try them"
        title_figure(figure, "Circuits of edges through training\n", subtitle)
    return figure
