"""Figure of AA7: neurons and their Fourier components."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from bindscope.measures.arithmetic.neurons import EXAMPLES, FITS, NeuronFit, fitted_preactivations
from bindscope.studies.plots.style import (
    BLUE,
    GREY,
    MUTED,
    ORANGE,
    new_figure,
    place_legend_above,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)

BINS = np.linspace(0, 1, 41)


def draw_neurons(results: Mapping[str, xr.Dataset]) -> Figure:
    """Three neurons beside their Fourier components; below, how well all fit, with which frequencies, and since when."""
    dataset = results["neurons"]
    with new_figure(10.4, 5.6) as figure:
        above, below = figure.subfigures(2, 1, height_ratios=[1, 1.15])  # type: ignore[misc]
        _draw_examples(above, dataset)
        left, middle, right = below.subplots(1, 3, width_ratios=[1, 1, 1])
        _draw_explained(left, dataset)
        _draw_frequencies(middle, dataset)
        _draw_training(right, dataset)
        where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}"
        subtitle = f"{where} · {dataset.sizes['neuron']} neurons of the last MLP on {int(dataset.attrs['n_pairs']):,} literal sums"
        title_figure(figure, "AA7 · Neurons as Fourier components of their operands", subtitle)
    return figure


def draw_neuron(values: np.ndarray, fit: NeuronFit, title: str, subtitle: str = "") -> Figure:
    """One neuron's pre-activation [n1, n2], the Fourier component that fits it best, and what the Fourier component leaves."""
    with new_figure(9.2, 3.7) as figure:
        panels = figure.subplots(1, 3)
        parts = {
            "pre-activation": values,
            "Fourier component": fit.values,
            "what it leaves": values - fit.values + fit.mean,
        }
        for axes, (label, shown) in zip(panels, parts.items()):
            mesh = axes.pcolormesh(shown, cmap="viridis", vmin=values.min(), vmax=values.max(), rasterized=True)
            axes.set_aspect("equal")
            axes.grid(False)
            axes.set_title(label, fontsize=8.5, loc="left", color=MUTED)
            axes.set_xlabel("n2")
        panels[0].set_ylabel("n1")
        figure.colorbar(mesh, ax=list(panels), fraction=0.02, pad=0.01).outline.set_visible(False)  # type: ignore[operator]
        title_figure(figure, title, subtitle)
    return figure


def _draw_examples(figure: FigureBase, dataset: xr.Dataset) -> None:
    """Each neuron's pre-activation over both operands, and its Fourier component on the same colours."""
    fits = dataset.sel(source="model").isel(neuron=dataset.example_neuron.values)
    components = fitted_preactivations(fits)  # [position 1, position 2, example]
    panels = figure.subplots(1, 2 * len(EXAMPLES))
    for index, rank in enumerate(EXAMPLES):
        measured, fitted = dataset.example_preactivation.values[index], components[..., index]
        fit = fits.isel(neuron=index)
        low, high = measured.min(), measured.max()
        for axes, values, label in zip(
            panels[2 * index :], (measured, fitted), ("pre-activation", "Fourier component")
        ):
            axes.pcolormesh(values, cmap="viridis", vmin=low, vmax=high, rasterized=True)
            axes.set_aspect("equal")
            axes.grid(False)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_xlabel(f"n2 · {label}", fontsize=7.5)
        words = (
            f"neuron {int(fit.neuron)}, {rank}\nk = {int(fit.frequency)}, explained {float(fit.explained_variance):.1%}"
        )
        panels[2 * index].set_title(words, fontsize=8, loc="left", color=MUTED)
        panels[2 * index].set_ylabel("n1", fontsize=7.5)


def _draw_explained(axes: Axes, dataset: xr.Dataset) -> None:
    explained = dataset.explained_variance.sel(source="model").fillna(0).values
    permuted = dataset.permuted_explained_variance.fillna(0).values.reshape(-1)
    untrained = dataset.untrained_explained_variance.fillna(0).values
    for values, colour, style, label in (
        (explained, BLUE, "stepfilled", "trained"),
        (untrained, GREY, "step", "untrained"),
        (permuted, ORANGE, "step", "numbers shuffled"),
    ):
        weights = np.full(values.size, 1 / values.size)
        alpha = 0.55 if style == "stepfilled" else 1.0
        axes.hist(values, BINS, weights=weights, histtype=style, color=colour, alpha=alpha, label=label, linewidth=1.4)  # type: ignore[arg-type]
    axes.axvline(FITS, color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
    axes.set_yscale("log")
    axes.set_xlim(0, 1)
    axes.set_xlabel("explained variance of a neuron")
    axes.set_ylabel("fraction of neurons")
    place_legend_above(axes)


def _draw_frequencies(axes: Axes, dataset: xr.Dataset) -> None:
    counts = dataset.neurons_per_frequency.sel(source="model").isel(step=-1)
    axes.bar(dataset.component.values, counts.values, color=BLUE, width=0.8)
    for k, count in zip(dataset.component.values, counts.values):
        if count >= 0.01 * dataset.sizes["neuron"]:
            axes.annotate(str(int(k)), (k, count), ha="center", va="bottom", fontsize=7, color=MUTED)
    axes.margins(y=0.1)
    axes.set_xlabel("frequency k")
    axes.set_ylabel("neurons explained by half or more")


def _draw_training(axes: Axes, dataset: xr.Dataset) -> None:
    steps, model = dataset.step.values, dataset.sel(source="model")
    set_step_axis(axes, steps)
    for name, colour, dash, label in (
        ("fraction_fitting", BLUE, "-", "fit"),
        ("weighted_explained_variance", GREY, (0, (5, 1.5)), "explained"),
        ("fitted_accuracy", ORANGE, (0, (1.5, 1.2)), "Fourier components right"),
    ):
        marker = "o" if len(steps) == 1 else None
        axes.plot(steps, model[name].values, color=colour, linestyle=dash, label=label, marker=marker)  # type: ignore[arg-type]
    set_fraction_axis(axes)
    place_legend_above(axes)
