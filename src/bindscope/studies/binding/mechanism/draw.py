"""Figures of VB3, VB4 and VB5: the mechanism."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bindscope.studies.binding.mechanism.measure import chain_names
from bindscope.studies.framework.trajectory import phases_of
from bindscope.studies.plots.heat_map import add_colour_bar, draw_fraction_map
from bindscope.studies.plots.style import (
    BLUE,
    GREY,
    MUTED,
    ORANGE,
    PHASE_COLOURS,
    format_step,
    new_figure,
    place_legend_above,
    plot_interval,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)

MOST_TICKS = 13
HIGHEST_EFFECT = 0.4  # of one head: above this the colour no longer changes


def draw_chain(results: Mapping[str, xr.Dataset]) -> Figure:
    """Patching success over layer and position, a panel for each depth."""
    dataset = results["chain"]
    depths = [int(depth) for depth in dataset.depth.values]
    n_columns = min(2, len(depths))
    n_rows = -(-len(depths) // n_columns)
    with new_figure(4.6 * n_columns, 0.9 + n_rows * (0.9 + 0.27 * dataset.sizes["layer"])) as figure:
        panels = figure.subplots(n_rows, n_columns, squeeze=False)
        for axes, depth in zip(panels.flat, depths):
            asides = [str(name) for name in dataset.position.values if str(name).startswith("distractor")]
            positions = [*chain_names(depth), *asides]
            cells = dataset.success.sel(depth=depth, position=positions).transpose("layer", "position").values
            shown = [name.replace("distractor, ", "off: ").replace("distractor", "off: nearest") for name in positions]
            mesh = draw_fraction_map(axes, cells, [f"L{layer}" for layer in dataset["layer"].values], shown)
            n = int(dataset.n.sel(depth=depth, position="colon").max())
            axes.set_title(f"depth {depth}, n = {n}", fontsize=9, loc="left", color=MUTED)
            axes.tick_params(axis="x", labelsize=7, rotation=35)
            axes.axvline(len(positions) - len(asides) - 0.5, color=ORANGE, linewidth=1.2)
        for axes in panels.flat[len(depths) :]:
            axes.set_visible(False)
        for axes in panels[:, 0]:
            axes.set_ylabel("stream entering")
        add_colour_bar(list(panels.flat), mesh, percent=True)
        where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}"
        subtitle = f"{where} · patching success in per cent · without {dataset.attrs['excluded']}"
        title_figure(figure, "VB3 · Where the value can be changed", subtitle)
    return figure


def draw_heads(results: Mapping[str, xr.Dataset]) -> Figure:
    """What each head moves by itself, position by position, and what the strongest heads move together."""
    dataset = results["heads"]
    names = [str(position) for position in dataset.position.values if position != "anywhere"]
    positions = sorted(names, key=lambda position: position == "distractor")  # the control comes last
    with new_figure(max(8.4, 1.45 * (len(positions) + 2)), 3.5) as figure:
        widths = [*[1.0] * len(positions), 2.0]
        panels = figure.subplots(1, len(positions) + 1, width_ratios=widths)
        for index, (axes, position) in enumerate(zip(panels, positions)):
            cells = dataset.logit_difference.sel(position=position).transpose("layer", "head").values
            mesh = draw_fraction_map(
                axes,
                cells,
                dataset["layer"].values,
                dataset["head"].values,
                high=HIGHEST_EFFECT,
                written=cells.size <= 40,
                font_size=6,
            )
            axes.set_title(position, fontsize=9, color=MUTED)
            axes.set_xlabel("head")
            axes.set_ylabel("layer" if index == 0 else "")
        bar = figure.colorbar(mesh, ax=list(panels[:-1]), location="bottom", fraction=0.05, aspect=50, pad=0.04)
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.set_label("logit difference moved by one head, of 100 % from base to counterfactual", fontsize=8)
        bar.set_ticks([0, 0.2, HIGHEST_EFFECT], labels=["0 %", "20 %", f"{100 * HIGHEST_EFFECT:.0f} % +"])
        _draw_joint(panels[-1], dataset)
        n_fit, n_test = int(dataset.attrs["n_fit"]), int(dataset.attrs["n_test"])
        where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}"
        subtitle = f"{where} · ranked on {n_fit}, together on {n_test} pairs · without {dataset.attrs['excluded']}"
        title_figure(figure, "VB4 · Heads that carry the value", subtitle)
    return figure


def draw_emergence(results: Mapping[str, xr.Dataset]) -> Figure:
    """The frozen circuit's success over training beside the phases, and cell by cell."""
    dataset, phases = _worst_distractor(results["emergence"]), phases_of(results["trajectory"])
    steps = dataset.step.values
    with new_figure(10.4, max(3.4, 2.4 + 0.17 * dataset.sizes["cell"])) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
        set_step_axis(left, steps, "linear")
        for phase in phases:
            left.axvspan(phase.first_step, phase.last_step, color=PHASE_COLOURS[phase.name], alpha=0.13, linewidth=0)
        for name, colour, dash, label in (
            ("circuit", BLUE, "-", "frozen circuit"),
            ("accuracy", ORANGE, (0, (5, 1.5)), "both programs right"),
            ("distractor", GREY, (0, (1.5, 1.2)), "worst distractor"),
        ):
            plot_interval(left, steps, dataset, name, colour, linestyle=dash, label=label)
        set_fraction_axis(left)
        place_legend_above(left)
        cells = dataset.cell_success.transpose("cell", "step").values
        mesh = draw_fraction_map(
            right, cells, dataset.cell.values, [format_step(step) for step in steps], written=False
        )
        ticks = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), MOST_TICKS)).round().astype(int))
        right.set_xticks(ticks, [format_step(steps[tick]) for tick in ticks], rotation=50)
        right.set_xlabel("checkpoint, training step")
        add_colour_bar(right, mesh, percent=True)
        n = int(dataset.attrs["n"])
        subtitle = f"{dataset.attrs.get('run', '')} · n = {n} pairs, circuit frozen at step {int(dataset.attrs['frozen_at']):,}"
        title_figure(
            figure, "VB5 · The mechanism through training", f"{subtitle} · without {dataset.attrs['excluded']}"
        )
    return figure


def _worst_distractor(dataset: xr.Dataset) -> xr.Dataset:
    """Of the distractors, at each step the highest."""
    worst = dataset.distractor.fillna(-1).argmax("distractors")
    names = [f"distractor{end}" for end in ("", "_low", "_high")]
    return dataset.drop_vars(names).assign({name: dataset[name].isel(distractors=worst, drop=True) for name in names})


def _draw_joint(axes: Axes, dataset: xr.Dataset) -> None:
    rank = dataset["rank"].values
    plot_interval(
        axes, rank, dataset, "joint_success", BLUE, marker="o", markersize=4, label="strongest", clip_on=False
    )
    random = dataset.random_success.values
    axes.plot(np.full(len(random), rank[-1]), random, "x", color=GREY, markersize=5, label="random", clip_on=False)
    asides = dataset.distractor_success.values
    axes.plot(
        np.full(len(asides), rank[-1]), asides, "s", color=ORANGE, markersize=4, label="distractors", clip_on=False
    )
    names = [f"+L{layer}.H{head}" for layer, head in zip(dataset.ranked_layer.values, dataset.ranked_head.values)]
    if len(rank) <= 8:
        axes.set_xticks(rank, names, rotation=50, ha="right", rotation_mode="anchor", fontsize=7)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(0.6, rank[-1] + 0.4)
    axes.set_xlabel("heads patched together")
    set_fraction_axis(axes)
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.03, 1.0), ncols=3, handletextpad=0.3, columnspacing=0.8, fontsize=7.5
    )
