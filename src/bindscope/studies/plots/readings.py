"""Figures that say what is pointed at, without a script: words beside the place that the pointer makes visible.

Every point of a curve, bar, dot and cell of a heat map is found in the figure itself, so that each figure can be read.

>>> svg = readable_svg(dataset.plot(), "patch", "the residual stream")
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from html import escape
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import PercentFormatter
from matplotlib.transforms import Bbox

from bindscope.studies.plots.style import figure_to_svg

MOST = 4000  # readings of one figure; more cells than that are too small to point at
AROUND = 5.0  # points to each side of a dot
MARGIN = 0.04  # inches around a figure
LETTERS, LINE, PAD = 9.0, 12.0, 4.0  # of the words, in points
WIDE = 0.56  # of a letter, to its height
COLUMN = 72  # letters in a line
CURVE_FROM = 3  # a line through fewer points is a reference, not a curve
CSS = (
    ".bindscope-reading:hover>g{visibility:visible}.bindscope-reading:hover>rect{stroke:currentColor;stroke-opacity:.6}"
)


class Reading(NamedTuple):
    """A rectangle of a figure, in points from its upper left corner, and what stands there."""

    left: float
    top: float
    width: float
    height: float
    text: str


def readable_svg(figure: Figure, name: str, title: str) -> str:
    """The figure as :func:`figure_to_svg` writes it, with its readings."""
    before = figure.dpi
    figure.set_dpi(72)  # a pixel is a point, as in the file
    try:
        figure.draw_without_rendering()
        box = figure.get_tightbbox().padded(MARGIN)  # type: ignore[call-arg]
        readings = list(read_figure(figure, box))
        svg = figure_to_svg(figure, name, title, box)
    finally:
        figure.set_dpi(before)
    return _with_readings(svg, readings) if 0 < len(readings) <= MOST else svg


def read_figure(figure: Figure, box: Bbox) -> Iterator[Reading]:
    """What stands where in a figure that was drawn, of which ``box`` (in inches) is shown."""
    for axes in figure.axes:
        if axes.get_label() == "<colorbar>" or not axes.get_visible():
            continue
        for (left, bottom), (right, top), text in _read_axes(axes):
            shown = Bbox([[left, bottom], [right, top]])
            if Bbox.intersection(shown, axes.bbox) is not None:
                yield Reading(left - 72 * box.x0, 72 * box.y1 - top, right - left, top - bottom, text)


Corners = tuple[tuple[float, float], tuple[float, float], str]
Words = Callable[[float], str]


def _read_axes(axes: Axes) -> Iterator[Corners]:
    x, y = _words_along(axes.xaxis), _words_along(axes.yaxis)
    for mesh in axes.collections:
        if isinstance(mesh, QuadMesh):
            yield from _read_mesh(axes, mesh, x, y)
        elif isinstance(mesh, PathCollection):
            yield from _read_dots(axes, np.asarray(mesh.get_offsets(), dtype=float), str(mesh.get_label()), x, y)
    for image in axes.images:
        yield from _read_image(axes, image, x, y)
    for bars in axes.containers:
        if isinstance(bars, BarContainer):
            yield from _read_bars(axes, bars, x, y)
    for line in axes.get_lines():
        points = np.column_stack([np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)])
        if len(points) >= CURVE_FROM and line.get_transform().contains_branch(axes.transData):
            yield from _read_dots(axes, points, str(line.get_label()), x, y)


def _read_dots(axes: Axes, points: np.ndarray, label: str, x: Words, y: Words) -> Iterator[Corners]:
    named = "" if label.startswith("_") else f"{label}: "
    for point, (across, up) in zip(points, axes.transData.transform(points)):
        if np.isfinite([across, up]).all():
            text = f"{named}{x(point[0])}, {y(point[1])}"
            yield (across - AROUND, up - AROUND), (across + AROUND, up + AROUND), text


def _read_mesh(axes: Axes, mesh: QuadMesh, x: Words, y: Words) -> Iterator[Corners]:
    corners = np.asarray(mesh.get_coordinates(), float)
    yield from _read_cells(axes, corners[0, :, 0], corners[:, 0, 1], np.ma.asarray(mesh.get_array()), x, y)


def _read_image(axes: Axes, image: AxesImage, x: Words, y: Words) -> Iterator[Corners]:
    values: np.ma.MaskedArray = np.ma.asarray(image.get_array())
    if values.ndim != 2:
        return
    left, right, bottom, top = image.get_extent()
    first, last = (top, bottom) if image.origin == "upper" else (bottom, top)
    n_rows, n_columns = values.shape
    columns, rows = np.linspace(left, right, n_columns + 1), np.linspace(first, last, n_rows + 1)
    yield from _read_cells(axes, columns, rows, values, x, y)


def _read_cells(
    axes: Axes, columns: np.ndarray, rows: np.ndarray, values: np.ma.MaskedArray, x: Words, y: Words
) -> Iterator[Corners]:
    values = values.reshape(len(rows) - 1, len(columns) - 1)
    for (row, column), value in np.ndenumerate(values.filled(np.nan)):
        (x_0, y_0), (x_1, y_1) = axes.transData.transform(
            [(columns[column], rows[row]), (columns[column + 1], rows[row + 1])]
        )
        if np.isfinite(value):
            across, down = x((columns[column] + columns[column + 1]) / 2), y((rows[row] + rows[row + 1]) / 2)
            yield (min(x_0, x_1), min(y_0, y_1)), (max(x_0, x_1), max(y_0, y_1)), f"{down}, {across}: {value:.4g}"


def _read_bars(axes: Axes, bars: BarContainer, x: Words, y: Words) -> Iterator[Corners]:
    lying = bars.orientation == "horizontal"
    for bar in bars.patches:
        box = bar.get_bbox()
        (left, bottom), (right, top) = axes.transData.transform(box.get_points())
        middle = (box.y0 + box.y1) / 2 if lying else (box.x0 + box.x1) / 2
        text = f"{y(middle)}: {x(box.x1)}" if lying else f"{x(middle)}: {y(box.y1)}"
        yield (min(left, right), min(bottom, top) - 1), (max(left, right), max(bottom, top) + 1), text


def _words_along(axis: Axis) -> Words:
    """Values along an axis in words: the tick that stands there, or the number, after the axis's name."""
    title, places, formatter = (
        axis.get_label_text(),
        np.asarray(axis.get_majorticklocs(), float).tolist(),
        axis.get_major_formatter(),
    )
    percent = isinstance(formatter, PercentFormatter)
    ticks = {} if percent else dict(zip(places, formatter.format_ticks(places)))

    def words(value: float) -> str:
        plain = f"{100 * value:.1f} %" if percent else f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"
        tick = ticks.get(round(float(value), 9), "")
        return f"{title} {plain if _is_number(tick) else tick}".strip()

    return words


def _is_number(tick: str) -> bool:
    """Whether a tick says no more than the number does; none at all says nothing."""
    return re.fullmatch(r"[-−+]?[\d.,]*", tick) is not None


def _with_readings(svg: str, readings: list[Reading]) -> str:
    """The figure as large as it was drawn and no larger, with what it says where it is pointed at on top."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert found is not None, "a figure of matplotlib has a viewBox"
    width = float(found[1])
    svg = svg.replace(found[0], f'style="max-width:{width * 4 / 3:.0f}px" {found[0]}', 1)
    marks = "".join(_mark(reading, width) for reading in readings)
    look = f'font-family="system-ui, sans-serif" font-size="{LETTERS:g}px" fill="currentColor"'
    return svg.replace("</svg>", f"<style>{CSS}</style><g {look}>{marks}</g></svg>")


def _mark(reading: Reading, width: float) -> str:
    """The rectangle, and its words above it, or below where there is no room."""
    lines = textwrap.wrap(reading.text, max(8, min(COLUMN, int((width - 2 * PAD) / (WIDE * LETTERS)))))
    wide, high = WIDE * LETTERS * max(map(len, lines), default=0) + 2 * PAD, LINE * len(lines) + PAD
    x = max(0.0, min(reading.left, width - wide))
    above = reading.top - high - 2
    y = above if above >= 0 else reading.top + min(reading.height, LINE) + 2
    words = "".join(
        f'<tspan x="{x + PAD:.1f}" y="{y + LINE * (row + 1) - 1:.1f}">{escape(line)}</tspan>'
        for row, line in enumerate(lines)
    )
    paper = 'rx="2" fill="var(--paper, #fff)" fill-opacity="0.94" stroke="currentColor" stroke-opacity="0.4"'
    box = _rectangle(reading.left, reading.top, reading.width, reading.height, 'fill="transparent"')
    card = f"{_rectangle(x, y, wide, high, paper)}<text>{words}</text>"
    return f'<g class="bindscope-reading">{box}<g visibility="hidden" pointer-events="none">{card}</g></g>'


def _rectangle(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'
