"""Figures of AA5 and AA6: what the last MLP gets, and what it makes of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from bindscope.studies.plots.style import (
    BLUE,
    DASHES,
    GREY,
    INK,
    MUTED,
    ORANGE,
    format_fraction,
    label_rows,
    new_figure,
    plot_interval,
    set_fraction_axis,
    set_fraction_ticks,
    set_step_axis,
    title_figure,
)

PAIRING_COLOURS = (BLUE, ORANGE, GREY)
GROUP_STYLES = {"trained": (INK, DASHES[0]), "swap seen": (BLUE, DASHES[1]), "both held out": (ORANGE, DASHES[0])}
RIGHT, RIGHT_HELD_OUT, WRONG = "#dfe6ee", "#a9c8e6", "#e07b00"


def draw_equivalence(results: Mapping[str, xr.Dataset]) -> Figure:
    """AA5: the two histograms at the last step, and the mean cosines over training."""
    dataset = results["equivalence"]
    last = dataset.isel(step=-1)
    with new_figure(11.4, 3.5) as figure:
        sums, forms, curves = figure.subplots(1, 3)
        _draw_histogram(sums, last.sum_count.sum("n_variables"), "sum_pairing")
        sums.set_title("attention at = and OV2 e_a + OV2 e_b", fontsize=9, loc="left", color=MUTED, pad=20)
        _draw_histogram(forms, last.form_count.sum("form_variables"), "form_pairing")
        forms.set_title("variables and numbers, before the MLP", fontsize=9, loc="left", color=MUTED, pad=20)
        _draw_cosines(curves, dataset)
        n, step = int(dataset.attrs["n"]), int(dataset.step[-1])
        subtitle = f"{dataset.attrs.get('run', '')} at step {step:,} · {n} sums with each number of variables"
        title_figure(figure, "AA5 · One vector, whatever the form", subtitle)
    return figure


def draw_addition(results: Mapping[str, xr.Dataset]) -> Figure:
    """AA6: the circuit alone over training and pair by pair, and what probes read around the MLP."""
    dataset, probes = results["addition"], results["answer_probes"]
    with new_figure(11.6, 3.7) as figure:
        curves, pairs, bars = figure.subplots(1, 3, width_ratios=[1.1, 0.95, 1])
        _draw_groups(curves, dataset)
        _draw_pairs(pairs, dataset)
        _draw_probes(bars, probes)
        run, step = dataset.attrs.get("run", ""), int(dataset.step[-1])
        n_fit, n_test = int(probes.attrs["n_fit"]), int(probes.attrs["n_test"])
        subtitle = f"{run} at step {step:,} · probes fitted on {n_fit:,}, tested on {n_test:,} sums of other pairs"
        title_figure(figure, "AA6 · The last MLP adds", subtitle)
    return figure


def _draw_histogram(axes: Axes, counts: xr.DataArray, pairing: str) -> None:
    centres = counts.bin.values
    width = centres[1] - centres[0]
    for name, colour in zip(counts[pairing].values, PAIRING_COLOURS):
        cells = counts.sel({pairing: name}).values
        mean = float((cells * centres).sum() / cells.sum())
        axes.bar(centres, cells / cells.sum(), width, color=colour, alpha=0.65, label=str(name))
        axes.axvline(mean, color=colour, linewidth=1.2, linestyle=DASHES[2])
    axes.set_xlabel("cosine")
    axes.set_xlim(-1, 1.02)
    axes.set_xticks(np.linspace(-1, 1, 5))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 0.985), ncols=3, columnspacing=0.9, handlelength=1.0)


def _draw_cosines(axes: Axes, dataset: xr.Dataset) -> None:
    steps = dataset.step.values
    series: tuple[tuple[str, dict[str, str], str, str, str, str], ...] = (
        ("sum_cosine", {"vector": "attention"}, "n_variables", "sum_pairing", BLUE, "OV images"),
        ("form_cosine", {}, "form_variables", "form_pairing", ORANGE, "number form"),
    )
    for name, where, count, pairing, colour, label in series:
        means = dataset[name].sel(where).mean(count)
        axes.plot(steps, means.sel({pairing: "matched"}), color=colour, label=f"{label}, matched")
        others = means.sel({pairing: [other for other in means[pairing].values if other != "matched"]})
        axes.plot(steps, others.max(pairing), color=colour, linestyle=DASHES[2], label="nearest other")
    set_step_axis(axes, steps, "linear")
    axes.set_ylim(-0.05, 1.02)
    axes.set_ylabel("mean cosine")
    axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 0.985), ncols=2, columnspacing=0.9, fontsize=7.5)


def _draw_groups(axes: Axes, dataset: xr.Dataset) -> None:
    steps = dataset.step.values
    for group, (colour, dash) in GROUP_STYLES.items():
        cell = dataset.sel(group=group)
        label = f"{group}, {int(cell.n.values.flat[0]):,}"
        plot_interval(axes, steps, cell, "accuracy", colour, alpha=0.18, linestyle=dash, label=label)
    axes.plot(steps, dataset.direct_accuracy, color=GREY, linestyle=DASHES[2], label="without the MLP")
    set_step_axis(axes, steps, "linear")
    set_fraction_axis(axes)
    axes.set_ylabel("pairs that the circuit alone adds")
    axes.legend(loc="lower right", fontsize=7.5, bbox_to_anchor=(1.0, 0.08))


def _draw_pairs(axes: Axes, dataset: xr.Dataset) -> None:
    """Each pair by whether it was trained and whether the circuit alone adds it."""
    last = dataset.isel(step=-1)
    correct, trained = last.correct.values.astype(bool), dataset.is_trained.values.astype(bool)
    kinds = np.where(correct, np.where(trained, 0, 1), 2)
    axes.pcolormesh(
        kinds, cmap=ListedColormap([RIGHT, RIGHT_HELD_OUT, WRONG]), vmin=-0.5, vmax=2.5, rasterized=kinds.size > 3000
    )
    axes.set_aspect("equal")
    axes.grid(False)
    axes.set(xlabel="second number", ylabel="first number")
    wrong = int((kinds == 2).sum())
    words = f"{wrong:,} of {kinds.size:,} pairs wrong (orange); held out: blue"
    axes.set_title(words, fontsize=8.5, loc="left", color=MUTED)


def _draw_probes(axes: Axes, probes: xr.Dataset) -> None:
    conditions = [str(name) for name in probes.condition.values]
    rows = np.arange(len(conditions))
    for index, (site, colour) in enumerate(zip(probes.site.values, (GREY, BLUE))):
        cell, at = probes.sel(site=site), rows + 0.2 * (2 * index - 1)
        axes.barh(at, cell.accuracy, color=colour, height=0.36, label=str(site))
        axes.hlines(at, cell.accuracy_low, cell.accuracy_high, color=INK, linewidth=1)
        for y, fraction, high in zip(at, cell.accuracy.values, cell.accuracy_high.values):
            axes.text(high + 0.02, y, format_fraction(float(fraction)), va="center", fontsize=7.5)
    label_rows(axes, conditions)
    axes.set_xlim(0, 1.2)
    set_fraction_ticks(axes.xaxis)
    axes.set_xlabel("answers that a linear probe reads")
    axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 0.985), ncols=2, columnspacing=1.0)
