"""The figure of each experiment of study 1."""

from __future__ import annotations

from functools import partial

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from bindscope.studies.plots.experiment_charts import (
    Chart,
    draw_charts,
    draw_fraction,
    draw_milestones,
    draw_phases,
    draw_seed_lines,
    finish_step_axes,
    variant_colours,
)
from bindscope.studies.plots.heat_map import draw_cells, write_cells
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    GREY,
    INK,
    ORANGE,
    ordered_colours,
    place_legend_above,
    set_fraction_axis,
    set_step_axis,
)

ACCURACY = Chart("Accuracy", "right answers; one line a seed", draw_fraction("accuracy"))
CHAIN = Chart("Following the chain", "of the programs that lines 1 and 2 mislead", draw_fraction("follows_chain"))
HEURISTIC = Chart(
    "Answering from lines 1 and 2", "of the programs that they mislead", draw_fraction("follows_early_lines")
)
MILESTONES = Chart(
    "When it was learned",
    "ring: left the plateau; disc: all depths ≥ 90 %; cross: never",
    draw_milestones,
)
PHASES = Chart("Phases", "with the median accuracy of each", draw_phases)
PART_NAMES = {
    "identity scores": "identity scores",
    "trained scores": "trained scores",
    "identity scores reversed": "scores: a → −a",
    "identity outputs": "identity outputs",
    "trained outputs": "trained outputs",
}
SITUATION_TITLES = {
    "query": ("Queried variable written before", "its first write"),
    "earlier": ("Referenced variable written before", "its first write"),
    "later": ("Referenced variable written again later", "its last write"),
}


def draw_seeds(dataset: xr.Dataset) -> Figure:
    return draw_charts(dataset, (ACCURACY, CHAIN, PHASES))


def draw_held_out(dataset: xr.Dataset) -> Figure:
    splits = Chart(
        "Seen and held-out combinations", "right answers on the test split and on the held-out one", _draw_splits
    )
    return draw_charts(dataset, (splits, PHASES))


def draw_fixed_length(dataset: xr.Dataset) -> Figure:
    lengths = Chart("At other lengths", "mean of the depths of training; dashed: of deeper ones", _draw_grid_lengths)
    return draw_charts(dataset, (ACCURACY, PHASES, lengths))


def draw_weighting(dataset: xr.Dataset) -> Figure:
    longest = Chart("The longest chain", "misled by it; grey: by another chain", _draw_longest)
    return draw_charts(dataset, (HEURISTIC, longest, PHASES))


def draw_comparison(dataset: xr.Dataset) -> Figure:
    return draw_charts(dataset, (ACCURACY, CHAIN, MILESTONES))


def draw_identity(dataset: xr.Dataset) -> Figure:
    milestones = Chart(MILESTONES.title, MILESTONES.subtitle, draw_milestones)
    parts = Chart(
        "binding-laptop without a part", "accuracy in %, mean of all depths, by layer it is taken from", _draw_parts
    )
    likeness = Chart("What a name is like", "mean x·x/d of a name and what stands …, entering a layer", _draw_likeness)
    scales = Chart("What a becomes", "in binding-laptop, one line a head; grey: first two layers", _draw_scales)
    return draw_charts(dataset, (milestones, parts, likeness, scales), height=3.6)


def draw_reassignment(dataset: xr.Dataset) -> Figure:
    charts = [
        Chart(title, f"solid: the right write; dashed: the rival, {rival}", partial(_draw_writes, situation))
        for situation, (title, rival) in SITUATION_TITLES.items()
    ]
    return draw_charts(dataset, charts)


def draw_long(dataset: xr.Dataset) -> Figure:
    lengths = Chart("At other lengths", "mean of all depths; dot: the length it was trained to", _draw_lengths)
    depths = Chart("By depth, at its own length", "last checkpoint", _draw_last_depths)
    return draw_charts(dataset, (MILESTONES, depths, lengths))


def _draw_splits(axes: Axes, dataset: xr.Dataset) -> None:
    for index, (variable, label, colour) in enumerate(
        (("accuracy", "test", BLUE), ("held_out_accuracy", "held out", ORANGE))
    ):
        draw_seed_lines(axes, dataset[variable].isel(variant=0), colour, label, index)
    finish_step_axes(axes, dataset)


def _draw_grid_lengths(axes: Axes, dataset: xr.Dataset) -> None:
    grids = dataset.grid_accuracy.isel(variant=0)
    shallow = grids.grid_depth <= int(dataset.depth.max())
    for mask, dash, label in ((shallow, "-", "depths of training"), (~shallow, "--", "deeper")):
        for seed in grids.seed.values:
            curve = grids.sel(seed=seed).where(mask).mean("grid_depth")
            axes.plot(grids.grid_lines, curve, color=BLUE, linestyle=dash, lw=1.3, label=label)
            label = "_"
    set_fraction_axis(axes)
    axes.set_xticks(dataset.grid_lines.values)
    axes.set_xlabel("lines of the programs asked about", labelpad=2)
    axes.legend(loc="lower left")


def _draw_longest(axes: Axes, dataset: xr.Dataset) -> None:
    for index, (name, colour) in enumerate(variant_colours(dataset).items()):
        rows = dataset.sel(variant=name)
        draw_seed_lines(axes, rows.longest_chain_fraction, colour, name, index, over="checkpoint")
        draw_seed_lines(axes, rows.another_chain_fraction, GREY, "_", index, over="checkpoint")
    set_step_axis(axes, dataset.checkpoint.values, "linear")
    axes.set_ylim(0, 0.5)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    place_legend_above(axes)


def _draw_parts(axes: Axes, dataset: xr.Dataset) -> None:
    by_layer = dataset.accuracy_without_layer.mean("laptop_depth")  # [layer, part]
    later = dataset.accuracy_without_later.mean("laptop_depth")  # [part]
    names = list(PART_NAMES)
    table = np.array([[*by_layer.sel(part=name).values, float(later.sel(part=name))] for name in names])
    columns = [*(f"{layer}" for layer in by_layer.layer.values), "1 to last"]
    mesh = draw_cells(axes, table, rows=[PART_NAMES[name] for name in names], columns=columns, colours="Blues",
                      limits=(0, 1.25), top_down=True)  # fmt: skip
    write_cells(axes, mesh, table, lambda value: f"{value:.0%}".replace("%", ""), 8)
    axes.set_xlabel("layer", labelpad=2)


def _draw_likeness(axes: Axes, dataset: xr.Dataset) -> None:
    shown = ("own token earlier", "left of the assignment", "right of the assignment", "right of another")
    for name, colour in zip(shown, (CATEGORIES[5], CATEGORIES[3], ORANGE, GREY)):
        axes.plot(dataset.layer, dataset.likeness.sel(target=name), marker="o", ms=4, color=colour, label=name)
    axes.axhline(0, color=INK, lw=0.7)
    axes.set_xticks(dataset.layer.values)
    axes.set_xlabel("layer", labelpad=2)
    axes.legend(loc="upper right", fontsize=7.5)


def _draw_scales(axes: Axes, dataset: xr.Dataset) -> None:
    later = dict(zip(dataset.layer.values[2:], ordered_colours(dataset.sizes["layer"] - 2)))
    for layer in dataset.layer.values:
        label = f"layer {layer}" if layer in later else "_"
        for head in dataset["head"].values:
            curve = dataset.scaled_a_at.sel(layer=layer, head=head)
            axes.plot(dataset.laptop_step, curve, color=later.get(layer, GREY), lw=1.1, label=label)
            label = "_"
    axes.axhline(0, color=INK, lw=0.7)
    set_step_axis(axes, dataset.laptop_step.values, "linear")
    axes.set_ylabel("a · gain / √d")
    place_legend_above(axes)


def _draw_writes(situation: str, axes: Axes, dataset: xr.Dataset) -> None:
    fractions = dataset.write_fraction.sel(situation=situation)
    for name, colour in variant_colours(dataset).items():
        rows = fractions.sel(variant=name)
        draw_seed_lines(axes, rows.sel(outcome="right"), colour, f"trained {name}", 0, over="checkpoint")
        draw_seed_lines(axes, rows.sel(outcome="rival"), colour, "_", 1, over="checkpoint")
    set_fraction_axis(axes)
    set_step_axis(axes, dataset.checkpoint.values, "linear")
    place_legend_above(axes)


def _draw_last_depths(axes: Axes, dataset: xr.Dataset) -> None:
    for colour, name in zip(ordered_colours(len(dataset.variant)), dataset.variant.values):
        rows = dataset.accuracy_by_depth.sel(variant=name)
        label = str(name)
        for seed in rows.seed.values:
            cell = rows.sel(seed=seed).dropna("step", how="all")
            if len(cell.step):
                axes.plot(cell.depth, cell.isel(step=-1), marker="o", ms=4, color=colour, label=label)
                label = "_"
    set_fraction_axis(axes)
    axes.set_xlabel("depth", labelpad=2)
    axes.legend(loc="lower left")


def _draw_lengths(axes: Axes, dataset: xr.Dataset) -> None:
    for colour, name in zip(ordered_colours(len(dataset.variant)), dataset.variant.values):
        rows = dataset.accuracy_at.sel(variant=name).mean("depth").dropna("seed", how="all")
        for seed in rows.seed.values:
            axes.plot(rows.lines, rows.sel(seed=seed), color=colour, lw=1.4)
            own = int(str(name).split("-")[0])
            if own <= int(rows.lines.max()):
                axes.plot([own], [np.interp(own, rows.lines, rows.sel(seed=seed))], "o", ms=6, color=colour)
    set_fraction_axis(axes)
    axes.set_xticks(dataset.lines.values)
    axes.set_xlabel("lines of the programs asked about", labelpad=2)
