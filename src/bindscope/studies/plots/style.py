"""How figures look: one quiet style, colours that survive colour blindness, and SVG that follows a page's theme.

Orange stands for the early-line heuristic, blue for following the chain, grey for neither; ordered quantities take viridis.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator, PercentFormatter
from matplotlib.transforms import Bbox
from numpy.typing import ArrayLike

from bindscope.errors import BindscopeError
from bindscope.runs.files import explain_failure, write_atomically

INK, MUTED, GRID = "#1f2430", "#667085", "#e3e6eb"
BLUE, ORANGE, GREY = "#1f6fb2", "#e07b00", "#8a919e"
PHASE_COLOURS: Mapping[str, str] = {
    **{"random": GREY, "heuristic": ORANGE, "systematic": BLUE},
    **{"addition": GREY, "assignment": ORANGE, "refinement": BLUE},
}
CATEGORIES = (BLUE, ORANGE, "#8c5fbf", "#5aa9d6", "#b0893a", "#5c6470")
IN_ORDER = (GREY, ORANGE, BLUE, *CATEGORIES[2:])  # of phases: first, second, …
DASHES: Sequence[Any] = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1)), (0, (8, 2)))
DARK_PAPER = "#171a21"
FORMATS = ("svg", "pdf", "png")
StepScale = Literal["auto", "linear", "log"]
MANY_TICKS = 8  # more are written smaller
LOG_FROM = 150  # with "auto", steps are logarithmic when the last is this many times the first positive one

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.8,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "bindscope",
    "pdf.fonttype": 42,
}


def phase_colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each phase of a family, by its start among them.

    >>> phase_colours(("guessing", "recall"))
    {'guessing': '#8a919e', 'recall': '#e07b00'}
    """
    return {name: IN_ORDER[index % len(IN_ORDER)] for index, name in enumerate(names)}


@contextmanager
def figure_style() -> Iterator[None]:
    """Everything drawn inside looks alike, whatever the reader's own matplotlib settings are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """An empty figure in the common style, of this size in inches, to be drawn on inside.

    >>> with new_figure(9.6, 3.3) as figure:
    ...     left, right = figure.subplots(1, 2)
    """
    with figure_style():
        yield Figure(figsize=(width, height), layout="constrained")


def ordered_colours(n: int) -> list[str]:
    """``n`` steps of viridis, without its palest end, which white paper swallows."""
    return [to_hex(colour) for colour in mpl.colormaps["viridis"](np.linspace(0.05, 0.75, max(n, 2)))[:n]]


def source_colours(n_lines: int) -> list[str]:
    """Line 1 and 2 in orange, later lines in ever deeper blue."""
    early = [ORANGE, "#f3b866"][:n_lines]
    later = mpl.colormaps["Blues"](np.linspace(0.35, 0.85, max(n_lines - 2, 1)))[: max(n_lines - 2, 0)]
    return early + [to_hex(colour) for colour in later]


def set_step_axis(axes: Axes, steps: np.ndarray, scale: StepScale = "auto") -> None:
    """Label steps as 0, 500, 1k, 20k, linear or logarithmic, so that both ends of a long run can be read."""
    positive = steps[steps > 0]
    first, last = (float(positive[0]), float(steps[-1])) if len(positive) else (1.0, 1.0)
    logarithmic = scale == "log" or (scale == "auto" and last / first >= LOG_FROM)
    if logarithmic and last > first:
        axes.set_xscale("symlog", linthresh=first, linscale=0.4)
        decades = [10.0**k for k in range(int(np.ceil(np.log10(first))), int(np.log10(last)) + 1)]
        axes.xaxis.set_major_locator(FixedLocator([0.0, *decades] if steps[0] == 0 else decades))
        axes.xaxis.set_minor_locator(NullLocator())
    elif len(steps) == 1:
        axes.xaxis.set_major_locator(FixedLocator([float(steps[0])]))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: format_step(step)))
    axes.set_xlim(*((steps[0] - 1, steps[0] + 1) if len(steps) == 1 else (steps[0], steps[-1])))
    axes.set_xlabel("training step", labelpad=2)


def set_log_axis(axes: Axes) -> None:
    """A logarithmic vertical axis with plain numbers; between the powers of ten too where there are few of those."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    few = np.log10(high / low) < 2
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0)) if few else NullLocator())
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def set_fraction_axis(axes: Axes) -> None:
    """A vertical axis from 0 to 100 %."""
    axes.set_ylim(0, 1.02)
    set_fraction_ticks(axes.yaxis)


def set_fraction_ticks(axis: Axis) -> None:
    """0 %, 20 %, … 100 % along an axis."""
    axis.set_major_formatter(PercentFormatter(1, decimals=0))
    axis.set_ticks(np.linspace(0, 1, 6))


def set_doubling_axis(axes: Axes, values: Iterable[float], which: Literal["x", "y"]) -> None:
    """A logarithmic axis with a tick for each value that is there: of widths, or of sizes of training sets."""
    ticks = sorted({float(value) for value in values})
    (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=2)
    name_ticks(axes.xaxis if which == "x" else axes.yaxis, ticks)
    if len(ticks) > MANY_TICKS:
        axes.tick_params(axis=which, labelsize=7)


def name_ticks(axis: Axis, ticks: Sequence[float]) -> None:
    """These numbers along an axis and no others, written out."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if value < 1 else f"{value:,.0f}"))


def label_rows(axes: Axes, names: Sequence[str]) -> None:
    """A name for each row, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def plot_interval(
    axes: Axes, x: ArrayLike, dataset: xr.Dataset, name: str, colour: str, alpha: float = 0.2, **style: Any
) -> None:
    """A curve of ``dataset`` over ``x`` with a band from its ``_low`` to its ``_high``."""
    axes.fill_between(x, dataset[f"{name}_low"], dataset[f"{name}_high"], color=colour, alpha=alpha, linewidth=0)
    axes.plot(x, dataset[name], color=colour, **style)


def place_legend_above(axes: Axes, title: str | None = None) -> None:
    """One row of labels over the panel; ``title`` goes before the first: "depth 1, 2, 3"."""
    handles, labels = axes.get_legend_handles_labels()
    if title is not None and labels:
        labels[0] = f"{title} {labels[0]}"
    axes.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(-0.01, 0.99),
        ncols=len(labels),
        columnspacing=1.3,
        handlelength=1.7,
        handletextpad=0.5,
        borderaxespad=0.2,
    )


def title_figure(figure: Figure, title: str, subtitle: str = "") -> None:
    """A caption-like title over a whole figure, flush left: what it shows, then on what."""
    words = f"{title}\n" if subtitle else title
    figure.suptitle(words, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
    if subtitle:
        figure.text(0.01, 0.985, f"\n{subtitle}", ha="left", va="top", fontsize=8, color=MUTED, linespacing=1.8)


def format_step(step: float) -> str:
    """``1200`` → ``1.2k``, ``105400`` → ``105.4k``, ``2000000`` → ``2M``."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(step) >= size:
            return f"{step / size:.4g}{unit}"
    return f"{step:.4g}"


def format_fraction(fraction: float) -> str:
    """``0.567`` → ``57 %``, ``0.9991`` → ``99.9 %``: never rounded up to a perfection that is not there."""
    if fraction < 0.99 or fraction == 1:
        return f"{fraction:.0%}".replace("%", " %")
    return f"{np.floor(fraction * 1000) / 10:.1f} %"


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure as the format its name ends in (svg, pdf or png), on white paper."""
    suffix = figure_format(path)
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[suffix]
    buffer = io.BytesIO()
    with figure_style():
        figure.savefig(buffer, format=suffix, dpi=200, facecolor="white", metadata=metadata, bbox_inches="tight")
    with explain_failure(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, buffer.getvalue())
    return path


def figure_format(path: Path) -> str:
    """The format that a figure's name ends in; another one is refused."""
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in FORMATS:
        raise BindscopeError(f"figure '{path.name}': unknown format '{suffix}'; use one of {', '.join(FORMATS)}.")
    return suffix


def figure_to_svg(figure: Figure, name: str, title: str, box: Bbox | None = None) -> str:
    """The figure as one inline ``<svg>`` for a page: its ink and grid follow the page's theme, its ids start with
    ``name`` so that several fit in one page, and ``title`` is what a screen reader says. ``box`` is what is shown of it,
    in inches: everything when left out.

    The page defines ``--ink``, ``--muted``, ``--grid``; series colours come from :func:`series_css`.
    """
    buffer = io.StringIO()
    with figure_style():
        figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches=box or "tight", pad_inches=0.04)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<style[^>]*>.*?</style>\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg)  # inside HTML the parser knows them
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)([^")]+)', rf"\1{name}-\2", svg)
    svg = re.sub(r"'DejaVu Sans'(, *sans-serif)?", "system-ui, sans-serif", svg)
    parts = re.split(r'(<g id="[^"]*QuadMesh_\d+">.*?</g>)', svg, flags=re.DOTALL)
    svg = "".join(part if index % 2 else _follow_theme(part) for index, part in enumerate(parts))
    svg = re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", svg, count=1)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def figure_to_svg_file(figure: Figure, name: str, title: str) -> str:
    """The figure as an ``.svg`` of its own, in the colours of light paper, with ``title`` for those who hear it."""
    light, _ = series_css()
    style = f"<style>:root{{--ink:{INK};--muted:{MUTED};--grid:{GRID};{light}}}</style>"
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    svg = figure_to_svg(figure, name, title).replace("<svg ", f"<svg {spaces} ", 1)
    start = svg.index(">") + 1
    return f"{svg[:start]}<title>{escape(title)}</title>{style}{svg[start:]}"


def _follow_theme(svg: str) -> str:
    """Ink, grid and series take their colours from the page; those of a heat map mean numbers and stay as they are."""
    for colour, variable in {INK: "ink", MUTED: "muted", GRID: "grid", **_series_variables()}.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return svg


def series_css() -> tuple[str, str]:
    """CSS declarations of the series colours, for light and for dark paper."""
    variables = _series_variables()
    light = "".join(f"--{name}:{colour};" for colour, name in variables.items())
    dark = "".join(f"--{name}:{_readable_on_dark(colour)};" for colour, name in variables.items())
    return light, dark


def _series_variables() -> dict[str, str]:
    colours = {*CATEGORIES, GREY, *(colour for n in range(1, 14) for colour in ordered_colours(n))}
    return {colour: f"c-{colour[1:]}" for colour in sorted(colours)}


def _readable_on_dark(colour: str, contrast: float = 4.0) -> str:
    """Mixed with white until it stands out from dark paper."""
    rgb = np.array(to_rgb(colour))
    for amount in np.linspace(0, 1, 21):
        mixed = rgb + (1 - rgb) * amount
        if (_luminance(mixed) + 0.05) / (_luminance(np.array(to_rgb(DARK_PAPER))) + 0.05) >= contrast:
            return to_hex(mixed)
    return "#ffffff"


def _luminance(rgb: np.ndarray) -> float:
    """Relative luminance as WCAG 2 defines it."""
    linear = np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))
