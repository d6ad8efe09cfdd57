"""A diagram of the strongest edges between the parts of a model, and how faithful circuits of them are, by size."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from bindscope.interventions.edge_circuit import CHOSEN
from bindscope.interventions.edges import ANYWHERE
from bindscope.model.sites import Site
from bindscope.studies.plots.style import (
    BLUE,
    CATEGORIES,
    GREY,
    INK,
    MUTED,
    ORANGE,
    new_figure,
    set_fraction_axis,
    title_figure,
)

N_EDGES = 40
SIDES = {"q": BLUE, "k": ORANGE, "v": CATEGORIES[2], "mlp_out": GREY, "final": INK}
WORDS = {"q": "queries", "k": "keys", "v": "values", "mlp_out": "an MLP", "final": "the logits"}


def draw_edges(dataset: xr.Dataset) -> Figure:
    """Left the strongest edges from the embedding (below) to the logits (above), right faithfulness over size."""
    about = dataset.attrs
    with new_figure(10.5, 5.6) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
        _draw_graph(left, dataset)
        _draw_faithfulness(right, dataset)
        title_figure(
            figure,
            f"{about['run']}, step {about['step']:,}: the {N_EDGES} strongest edges\n",
            f"{about['pairs']}; exact patches of {dataset.sizes['edge']} edges: correlation {about['correlation']:.2f}",
        )
    return figure


def _draw_graph(axes: Axes, dataset: xr.Dataset) -> None:
    means = dataset.effect_at.sel(position=ANYWHERE)
    strength = np.abs(means.values)
    order = np.argsort(-np.nan_to_num(strength, nan=-1).ravel(), kind="stable")[:N_EDGES]
    senders = [Site.parse(str(name)) for name in means.sender.values]
    receivers = [Site.parse(str(name)) for name in means.receiver.values]
    n_layers = 1 + max(site.layer or 0 for site in senders)
    n_heads = 1 + max(site.head or 0 for site in senders)
    most = float(np.nanmax(strength)) or 1.0
    used = set()
    for index in order[::-1]:
        s, r = np.unravel_index(index, strength.shape)
        start, end = _place(senders[s], n_layers, n_heads), _place(receivers[r], n_layers, n_heads)
        kind = receivers[r].name
        used |= {start, end}
        bend = 0.12 if start[0] == end[0] else 0.0
        arrow = FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=8, color=SIDES[kind], alpha=0.75,
            linewidth=0.4 + 4 * strength[s, r] / most, connectionstyle=f"arc3,rad={bend}", shrinkA=7, shrinkB=7,
        )  # fmt: skip
        axes.add_patch(arrow)
    for site in (*senders, Site("final")):
        x, y = _place(site, n_layers, n_heads)
        name = f"{site.layer}.{site.head}" if site.head is not None else "MLP" if site.layer is not None else site.name
        shade = INK if (x, y) in used else GREY
        axes.text(x, y, name, ha="center", va="center", fontsize=7, color=shade, bbox={"boxstyle": "round,pad=0.2", "fc": "white", "ec": shade, "lw": 0.6})  # fmt: skip
    for index, kind in enumerate(SIDES):
        axes.text(n_heads + 1.1, index * 0.4 - 0.9, f"to {WORDS[kind]}", color=SIDES[kind], fontsize=8)
    axes.set_xlim(-0.7, n_heads + 2.6)
    axes.set_ylim(-1.6, n_layers + 0.6)
    axes.set_axis_off()


def _place(site: Site, n_layers: int, n_heads: int) -> tuple[float, float]:
    if site.layer is None:
        return (n_heads / 2, n_layers + 0.1) if site.name == "final" else (n_heads / 2, -1.2)
    if site.name == "mlp_out":
        return n_heads + 0.2, site.layer + 0.3
    return float(site.head or 0), float(site.layer)


def _draw_faithfulness(axes: Axes, dataset: xr.Dataset) -> None:
    sizes = dataset["size"].values
    for circuit in dataset.circuit.values:
        one = dataset.sel(circuit=circuit)
        chosen = circuit == CHOSEN
        axes.plot(sizes, one.faithfulness, color=BLUE if chosen else GREY, linewidth=2 if chosen else 0.8, marker="o" if chosen else "", markersize=4)  # fmt: skip
        if chosen:
            axes.fill_between(sizes, one.faithfulness_low, one.faithfulness_high, color=BLUE, alpha=0.2, linewidth=0)
    axes.set_xscale("log")
    axes.set_xlabel("edges in the circuit")
    set_fraction_axis(axes)
    axes.set_ylim(-0.3, 1.2)
    axes.set_title("faithfulness: strongest edges (blue), random ones (grey)", loc="left", fontsize=8.5, color=MUTED)
