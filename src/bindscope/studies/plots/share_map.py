"""Heat maps of shares: viridis from 0 to 100 %, each cell's number written where there is room."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.ticker import PercentFormatter

ON_DARK, ON_LIGHT = "#ffffff", "#10131a"  # not the page's ink: what is written on a cell must not follow its theme
MOST_WRITTEN = 260  # cells above which numbers would be too small to read


def draw_share_map(
    axes: Axes,
    cells: np.ndarray,
    rows: Sequence[object] | np.ndarray,
    columns: Sequence[object] | np.ndarray,
    *,
    written: bool | None = None,
    font_size: float = 7,
    low: float = 0.0,
    high: float = 1.0,
) -> QuadMesh:
    """``cells [row, column]`` with the first row at the top; missing cells stay empty.

    >>> draw_share_map(axes, accuracy, rows=["L0", "L1"], columns=["rhs 1", "query", "colon"])
    """
    mesh = axes.pcolormesh(
        np.arange(len(columns) + 1) - 0.5,
        np.arange(len(rows) + 1) - 0.5,
        np.ma.masked_invalid(cells),
        cmap="viridis",
        vmin=low,
        vmax=high,
        linewidth=0,
        edgecolor="face",
        rasterized=cells.size > 3000,
    )
    axes.set_xticks(range(len(columns)), [str(column) for column in columns])
    axes.set_yticks(range(len(rows)), [str(row) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    if written if written is not None else cells.size <= MOST_WRITTEN:
        _write_numbers(axes, cells, font_size, low, high)
    return mesh


def add_share_bar(axes: Axes | Sequence[Axes], mesh: QuadMesh) -> None:
    """A colour bar in per cent beside one panel or several."""
    figure = mesh.figure
    assert figure is not None
    bar = figure.colorbar(mesh, ax=axes, pad=0.02, fraction=0.045, format=PercentFormatter(1, decimals=0))
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.set_ticks([0, 0.5, 1])


def _write_numbers(axes: Axes, cells: np.ndarray, font_size: float, low: float, high: float) -> None:
    colours = mpl.colormaps["viridis"]((np.nan_to_num(cells) - low) / (high - low))[..., :3]
    bright = colours @ np.array([0.2126, 0.7152, 0.0722]) > 0.45
    for (row, column), value in np.ndenumerate(cells):
        if np.isfinite(value):
            colour = ON_LIGHT if bright[row, column] else ON_DARK
            words = f"{100 * value:.0f}".replace("-0", "0")
            axes.text(column, row, words, ha="center", va="center", fontsize=font_size, color=colour)
