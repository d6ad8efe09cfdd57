"""Figure of AA11: what one gradient step writes, against its prediction, and what it does to answers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.measures.arithmetic.one_step import chosen, fit_gap, scale_limit, spread_attention
from bindscope.studies.plots.heat_map import BOTH_WAYS, add_colour_bar, draw_cells
from bindscope.studies.plots.style import (
    BLUE,
    DASHES,
    GREY,
    INK,
    MUTED,
    ORANGE,
    new_figure,
    ordered_colours,
    set_fraction_axis,
    set_log_axis,
    title_figure,
)

SPLIT_COLOURS = {"1 unseen": BLUE, "2 unseen": ORANGE}
TERM_WORDS = {"associative": "memory", "slot": "literal's slot"}
SPLIT_WORDS = {"1 unseen": "1 variable", "2 unseen": "2 variables"}
LITERAL_POSITION = 14  # the position of the literal operand
MOST_SHOWN = 2.0  # entries of the gradient beyond this many memories share the deepest colour


def draw_one_step(results: Mapping[str, xr.Dataset]) -> Figure:
    """Predicted and measured coefficients over β, p and λ, the gradient, and accuracy over the size of the step."""
    dataset = results["one_step"]
    with new_figure(11.0, 7.4) as figure:
        frames = figure.subplots(2, 3)
        panels = (_draw_terms, _draw_gap, _draw_scales, _draw_gradient, _draw_sizes, _draw_assignments)
        for axes, draw in zip(frames.flat, panels):
            draw(axes, dataset)
        title = "AA11 · One gradient step writes the associative memory"
        setting = (
            f"p = {dataset.attrs['modulus']}, {dataset.attrs['n_variables']} variables, β = {dataset.attrs['beta']:g}"
        )
        title_figure(
            figure, title, f"simplified model, {setting}; {dataset.attrs['n']:,} sums a split, pairs not trained on"
        )
    return figure


def _draw_terms(axes: Axes, dataset: xr.Dataset) -> None:
    """The memory's and the slot's coefficient over β."""
    here = dataset.sel(modulus=dataset.attrs["modulus"])
    for term, colour, marker in (("associative", BLUE, "o"), ("slot", ORANGE, "s")):
        predicted, measured = (1e3 * here[name].sel(term=term) for name in ("predicted", "measured"))
        axes.plot(dataset.beta, predicted, color=colour, lw=1.4, label=f"{TERM_WORDS[term]}, predicted")
        axes.plot(dataset.beta, measured, marker, color=colour, ms=4.5, mfc="none", label="measured", clip_on=False)
    axes.axhline(0, color=MUTED, lw=0.7)
    axes.set_xlabel("β, how sharply '=' attends to the literal")
    axes.set_ylabel("coefficient in −∇W / λ, thousandths")
    axes.legend(loc="upper right")
    _name(axes, "the two terms")


def _draw_gap(axes: Axes, dataset: xr.Dataset) -> None:
    """How far the memory stays below its prediction, for every p, over ε."""
    terms = dataset.sel(term="associative", beta=dataset.beta >= 1)
    epsilon = spread_attention(terms.beta.values)
    for modulus, colour in zip(dataset.modulus.values, ordered_colours(dataset.sizes["modulus"])):
        gap = 1 - (terms.measured.sel(modulus=modulus) / terms.predicted).values
        axes.plot(epsilon, gap, "o-", color=colour, ms=3.5, lw=1.2, label=f"p = {modulus}")
    axes.set_xscale("log")
    set_log_axis(axes)
    a, b = fit_gap(dataset)
    axes.set_xlabel("ε, attention on each other token")
    axes.set_ylabel("1 − measured / predicted")
    axes.legend(loc="lower right")
    _name(axes, f"the memory's gap, ≈ {a:.1f}·ε + {b:.1f}/p")


def _draw_scales(axes: Axes, dataset: xr.Dataset) -> None:
    """Where large logits leave the prediction, and what becomes of the answers there."""
    for term, colour in (("associative", BLUE), ("slot", ORANGE)):
        ratio = dataset.by_scale.sel(term=term) / dataset.by_scale_predicted.sel(term=term)
        limit = scale_limit(dataset, term)
        words = TERM_WORDS[term] + (f", 10 % off at λ = {limit:.2g}" if np.isfinite(limit) else "")
        axes.plot(dataset.scale, ratio, color=colour, label=words)
        if np.isfinite(limit):
            axes.axvline(limit, color=colour, lw=0.8, ls=":")
    axes.axhline(1, color=MUTED, lw=0.7)
    axes.set_xscale("log")
    set_log_axis(axes)
    axes.set_xlabel("λ, scale of the logits")
    axes.set_ylabel("measured / predicted")
    beside = axes.twinx()
    for split, words in SPLIT_WORDS.items():
        accuracy = dataset.accuracy_by_scale.sel(split=split)
        beside.plot(dataset.tried_scale, accuracy, "x--", color=GREY if split == "1 unseen" else INK, lw=1, ms=4,
                    label=f"accuracy, {words}")  # fmt: skip
    set_fraction_axis(beside)
    beside.grid(False)
    handles = [part for where in (axes, beside) for part in where.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, loc="upper left", fontsize=7)
    _name(axes, "large logits: the prediction breaks")


def _draw_gradient(axes: Axes, dataset: xr.Dataset) -> None:
    """−∇W itself, in units of the predicted memory."""
    cells = dataset.gradient.values
    mesh = draw_cells(axes, cells, colours=BOTH_WAYS, limits=(-MOST_SHOWN, MOST_SHOWN), top_down=True)
    axes.tick_params(labelsize=6.5)
    axes.set_xticks(range(cells.shape[1]), [str(label) for label in dataset["query"].values], rotation=90)
    kinds = [str(kind) for kind in dataset.kind.values]
    kinds = ["+ and =" if kind in "+=" else kind for kind in kinds]
    names = list(dict.fromkeys(kinds))
    first = np.array([kinds.index(name) for name in names])
    axes.set_yticks(first + (np.array([kinds.count(name) for name in names]) - 1) / 2, names)
    axes.hlines(first[first > 0] - 0.5, -0.5, cells.shape[1] - 0.5, color=MUTED, lw=0.4)
    literal = names.index("position")
    axes.annotate(
        "literal", (0.5, first[literal] + LITERAL_POSITION), ha="center", va="center", fontsize=5.5, color="white"
    )
    axes.set_xlabel("query (what '=' carries)")
    axes.set_ylabel("key")
    add_colour_bar(axes, mesh, "−∇W, predicted memory = 1", extend="both")
    _name(axes, "the gradient, without its numbers")


def _draw_sizes(axes: Axes, dataset: xr.Dataset) -> None:
    """Accuracy on pairs that the gradient did not see, over the size of the step."""
    sizes = dataset.step_size.values
    for split, colour in SPLIT_COLOURS.items():
        for direction, dashes, width in zip(dataset.direction.values, DASHES, (1.8, 1.0, 1.0)):
            accuracy = dataset.accuracy.sel(split=split, direction=direction)
            words = SPLIT_WORDS[split] if direction == "whole gradient" else None
            axes.plot(sizes, accuracy, color=colour, ls=dashes, lw=width, label=words)
    for direction, dashes in list(zip(dataset.direction.values, DASHES))[1:]:
        axes.plot([], [], color=GREY, ls=dashes, lw=1, label=str(direction))
    best = float(chosen(dataset).step_size[0])
    axes.axvline(best, color=INK, lw=0.8, ls=":")
    axes.annotate("chosen on seen\n1-variable sums ", (best, 0.99), ha="right", va="top", fontsize=7, color=INK)
    axes.set_xscale("symlog", linthresh=0.02, linscale=0.3)
    axes.set_xticks([0, 0.1, 1], ["0", "0.1", "1"])
    axes.set_xlim(0, sizes[-1])
    set_fraction_axis(axes)
    axes.set_xlabel("step size γ, the memory's weight after the step")
    axes.set_ylabel("accuracy")
    axes.legend(loc="center left", bbox_to_anchor=(0.0, 0.52), fontsize=7)
    _name(axes, "answers after one step")


def _draw_assignments(axes: Axes, dataset: xr.Dataset) -> None:
    """Before and after, by how many variables a sequence assigns."""
    for split, colour in SPLIT_COLOURS.items():
        for when, dashes in (("before", DASHES[2]), ("after", DASHES[0])):
            fractions = dataset.by_assignments.sel(split=split, when=when)
            words = SPLIT_WORDS[split] if when == "after" else None
            axes.plot(
                dataset.assignments, fractions, marker="o", color=colour, ls=dashes, ms=4, clip_on=False, label=words
            )
    axes.plot([], [], color=GREY, ls=DASHES[2], label="before")
    set_fraction_axis(axes)
    axes.set_xlabel("variables assigned in the sequence")
    axes.set_ylabel("accuracy")
    axes.legend(loc="center left", bbox_to_anchor=(0.0, 0.4), fontsize=7)
    _name(axes, "answers among more assignments")


def _name(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=9, color=INK)
