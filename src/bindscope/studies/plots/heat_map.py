"""The one heat map: cells with their colours, a bar beside them, and numbers written where there is room.

>>> mesh = draw_cells(axes, accuracy, rows=["L0", "L1"], columns=["rhs 1", "query", "colon"], top_down=True)
>>> add_colour_bar(axes, mesh, percent=True)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.ticker import PercentFormatter

from bindscope.studies.plots.style import BLUE, MUTED, ORANGE

BOTH_WAYS = LinearSegmentedColormap.from_list("blue–orange", [BLUE, "#ffffff", ORANGE])  # around 0
ON_DARK, ON_LIGHT = "#ffffff", "#10131a"  # not the page's ink: what is written on a cell must not follow its theme
MOST_WRITTEN = 260  # cells above which numbers would be too small to read
RASTER_FROM = 3000  # cells above which a heat map is stored as an image
Labels = Sequence[object] | np.ndarray
Limits = tuple[float | None, float | None]


def draw_cells(
    axes: Axes,
    cells: np.ndarray,
    *,
    rows: Labels | None = None,
    columns: Labels | None = None,
    colours: str | Colormap = "viridis",
    limits: Limits = (None, None),
    row_edges: np.ndarray | None = None,
    column_edges: np.ndarray | None = None,
    top_down: bool = False,
) -> QuadMesh:
    """``cells [row, column]`` at whole numbers unless edges are given; missing cells stay empty.

    ``rows`` and ``columns`` label every one of them; ``top_down`` has the first row at the top.
    """
    n_rows, n_columns = cells.shape
    mesh = axes.pcolormesh(
        np.arange(n_columns + 1) - 0.5 if column_edges is None else column_edges,
        np.arange(n_rows + 1) - 0.5 if row_edges is None else row_edges,
        np.ma.masked_invalid(cells),
        cmap=colours,
        vmin=limits[0],
        vmax=limits[1],
        linewidth=0,
        edgecolor="face",
        rasterized=cells.size > RASTER_FROM,
    )
    if columns is not None:
        axes.set_xticks(range(n_columns), [str(column) for column in columns])
    if rows is not None:
        axes.set_yticks(range(n_rows), [str(row) for row in rows])
    if top_down:
        axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    return mesh


def draw_fraction_map(
    axes: Axes,
    cells: np.ndarray,
    rows: Labels,
    columns: Labels,
    *,
    written: bool | None = None,
    font_size: float = 7,
    low: float = 0.0,
    high: float = 1.0,
) -> QuadMesh:
    """Fractions ``[row, column]`` from 0 to 100 %, the first row at the top, written out where there are few cells.

    >>> draw_fraction_map(axes, accuracy, rows=["L0", "L1"], columns=["rhs 1", "query", "colon"])
    """
    mesh = draw_cells(axes, cells, rows=rows, columns=columns, limits=(low, high))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    if written if written is not None else cells.size <= MOST_WRITTEN:
        write_cells(axes, mesh, cells, lambda value: f"{100 * value:.0f}".replace("-0", "0"), font_size)
    return mesh


def write_cells(
    axes: Axes, mesh: QuadMesh, cells: np.ndarray, words: Callable[[float], str], font_size: float = 7
) -> None:
    """Each known cell's number on it, dark on bright cells and bright on dark ones."""
    colours = mesh.to_rgba(np.nan_to_num(cells).ravel())[:, :3].reshape(*cells.shape, 3)
    bright = colours @ np.array([0.2126, 0.7152, 0.0722]) > 0.45
    for (row, column), value in np.ndenumerate(cells):
        if np.isfinite(value):
            colour = ON_LIGHT if bright[row, column] else ON_DARK
            axes.text(column, row, words(float(value)), ha="center", va="center", fontsize=font_size, color=colour)


def add_colour_bar(
    axes: Axes | Sequence[Axes],
    mesh: QuadMesh,
    label: str = "",
    *,
    percent: bool = False,
    fraction: float = 0.05,
    extend: str = "neither",
) -> None:
    """What the colours mean, beside one panel or several; ``percent``: from 0 to 100 %."""
    figure = mesh.figure
    assert figure is not None
    bar = figure.colorbar(mesh, ax=axes, pad=0.02, fraction=fraction, extend=extend)
    bar.outline.set_visible(False)  # type: ignore[operator]
    if label:
        bar.set_label(label, color=MUTED)
    if percent:
        bar.set_ticks([0, 0.5, 1])
        bar.ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
