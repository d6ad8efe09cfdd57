"""The figure ``token-maps``: what OV of both layers makes of every token, and QK2 between tokens and layer 1's copies of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.plots.heat_map import BOTH_WAYS, add_colour_bar, draw_cells
from bindscope.studies.plots.style import INK, MUTED, new_figure, title_figure

COPY = "OV1 "  # before the name of a token: layer 1's copy of it
SHOWN = 0.999  # of the entries lie within the colours' reach


def draw_token_maps(results: Mapping[str, xr.Dataset]) -> Figure:
    """E·OV·Eᵀ of both layers on the left, [E; E·OV1]·QK2·[E; E·OV1]ᵀ on the right."""
    dataset = results["score_terms"]
    with new_figure(12.4, 7.6) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=[1, 1.85])  # type: ignore[misc]
        for axes, layer in zip(left.subplots(2, 1), dataset["layer"].values):
            names = [str(name) for name in dataset.token.values]
            _draw_map(axes, dataset.token_ov.sel(layer=layer).values, names, "")
            axes.set_title(f"E·OV{layer}·Eᵀ: what a token becomes in layer {layer}", **TITLE)
            axes.set_ylabel("token attended to")
            axes.set_xlabel("output along")
        axes = right.subplots()
        _draw_map(axes, dataset.token_qk2.values, [str(name) for name in dataset["query"].values], "score")
        axes.set_title("[E; E·OV1]·QK2·[E; E·OV1]ᵀ: who attends to whom in layer 2", **TITLE)
        axes.set_ylabel("query")
        axes.set_xlabel("key")
        step = int(dataset.step.values[-1])
        subtitle = f"{dataset.attrs.get('run', '')} at step {step:,} · read off the weights, before any softmax"
        title_figure(figure, "Tokens through the weights\n", subtitle)
    return figure


TITLE = {"fontsize": 9, "loc": "left", "color": INK}


def _draw_map(axes: Axes, cells: np.ndarray, names: Sequence[str], unit: str) -> None:
    reach = max(float(np.quantile(np.abs(cells), SHOWN)), 1e-9)
    mesh = draw_cells(axes, cells, colours=BOTH_WAYS, limits=(-reach, reach), top_down=True)
    axes.set_aspect("equal")
    add_colour_bar(axes, mesh, unit, fraction=0.046, extend="both" if np.abs(cells).max() > reach else "neither")
    groups = group_tokens(names)
    starts = [first for first, _ in groups.values()]
    for edge in starts[1:]:
        axes.axhline(edge - 0.5, color=MUTED, linewidth=0.5)
        axes.axvline(edge - 0.5, color=MUTED, linewidth=0.5)
    middles = [(first + last) / 2 for first, last in groups.values()]
    axes.set_xticks(middles, list(groups), rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(middles, list(groups))


def group_tokens(names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Where numbers, signs and variables stand among ``names``, and their copies: first and last index of each."""
    found: dict[str, tuple[int, int]] = {}
    for index, name in enumerate(names):
        token = name.removeprefix(COPY)
        kind = "numbers" if token.isdigit() else "variables" if len(token) == 1 and token.isalpha() else "+ = PAD"
        group = f"copies of {kind}" if name.startswith(COPY) else kind
        found[group] = (found.get(group, (index, index))[0], index)
    return found
