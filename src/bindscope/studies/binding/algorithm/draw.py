"""The arrow diagram: which hop of a chain is made in which layer, as value or as pointer."""

from __future__ import annotations

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from bindscope.measures.binding.algorithm.patches import path_of
from bindscope.measures.binding.algorithm.reading import Arrow, Reading, read_algorithm, summarise_algorithm
from bindscope.studies.plots.style import BLUE, GREY, INK, MUTED, ORANGE, new_figure, title_figure

COLOURS = {"value": BLUE, "pointer": ORANGE}
LETTERS = "abcdefghijklmnop"


def draw_algorithm(dataset: xr.Dataset) -> Figure:
    """A panel for each depth: the chain from left to right, layers from bottom to top, an arrow for each hop."""
    readings, n_layers = read_algorithm(dataset), dataset.sizes["layer"] - 1
    n_columns = min(2, len(readings))
    n_rows = -(-len(readings) // n_columns)
    with new_figure(4.9 * n_columns, 0.9 + n_rows * (1.1 + 0.24 * n_layers)) as figure:
        panels = figure.subplots(n_rows, n_columns, squeeze=False)
        for axes, reading in zip(panels.flat, readings):
            draw_reading(axes, reading, n_layers)
        for axes in panels.flat[len(readings) :]:
            axes.set_visible(False)
        for axes in panels[:, 0]:
            axes.set_ylabel("layer")
        keys = [Line2D([], [], color=colour, label=name) for name, colour in COLOURS.items()]
        panels.flat[0].legend(handles=keys, loc="upper left", fontsize=7.5, ncols=2)
        where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}"
        n = int(dataset.attrs["n_drawn"])
        title_figure(
            figure,
            f"How a chain is followed: {summarise_algorithm(readings)}",
            f"{where} · an arrow is what a patch moves there in {n} pairs a hop, in the layer where half of it has arrived",
        )
    return figure


def draw_reading(axes: Axes, reading: Reading, n_layers: int) -> None:
    """The arrows of one depth. What enters layer l stands at height l."""
    path = path_of(reading.depth)
    where = {name: column for column, name in enumerate(path)}
    for column in where.values():
        axes.axvline(column, color=GREY, linewidth=0.6, alpha=0.5, zorder=0)
    arrived: dict[tuple[str, str], int] = {}  # (what, position) → the layer it enters first
    for arrow in reading.arrows:
        waits = arrived.get((arrow.what, arrow.source), arrow.last_layer)
        axes.plot([where[arrow.source]] * 2, [waits, arrow.last_layer], ":", color=COLOURS[arrow.what], linewidth=1.2)
        for target in arrow.targets:
            _draw_arrow(axes, arrow, where[arrow.source], where[target], named=target == arrow.targets[-1])
            arrived.setdefault((arrow.what, target), arrow.last_layer + 1)
    axes.set_xlim(-0.4, len(path) - 0.6)
    axes.set_ylim(-0.2, n_layers + 0.4)
    axes.set_yticks(range(n_layers + 1), [*(f"L{layer}" for layer in range(n_layers)), "end"], fontsize=7)
    axes.set_xticks(
        range(len(path)), [f"{name}\n{text}" for name, text in zip(path, _tokens(reading.depth))], fontsize=7
    )
    axes.set_title(f"depth {reading.depth}: {reading.algorithm}", fontsize=9, loc="left", color=MUTED)
    if not reading.arrows:
        words = "not learned" if not reading.hops else "no arrow"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", color=MUTED, fontsize=9)


def _draw_arrow(axes: Axes, arrow: Arrow, source: int, target: int, named: bool) -> None:
    colour = COLOURS[arrow.what]
    start, end = (source, arrow.last_layer), (target, arrow.last_layer + 1)
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=9, color=colour, linestyle="-" if arrow.what == "value" else "--",
            linewidth=0.6 + 1.4 * arrow.strength, alpha=0.35 + 0.65 * arrow.strength, shrinkA=1, shrinkB=1,
            connectionstyle=f"arc3,rad={0.08 if arrow.what == 'value' else -0.08}",
        )
    )  # fmt: skip
    if named:
        along = 0.75 if arrow.what == "value" else 0.35
        together = " together" if len(arrow.targets) > 1 else ""
        x, y = source + along * (target - source), arrow.last_layer + along
        axes.text(x, y + 0.12, f"{arrow.strength:.0%}{together}", fontsize=6, color=INK, ha="right", va="bottom")


def _tokens(depth: int) -> list[str]:
    """What stands at each position of an example: ``a=5``, ``b=a``, …, ``#b``, ``:``."""
    lines = ["a=5", *(f"{LETTERS[hop]}={LETTERS[hop - 1]}" for hop in range(1, depth))]
    return [*lines, f"#{LETTERS[depth - 1]}", ":"]
