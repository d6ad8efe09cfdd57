"""The figure of a claim that is written as a document: each term's number with its interval and its thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.framework.claims import Quantity, ends_of
from bindscope.studies.framework.terms import Term, read_term
from bindscope.studies.plots.style import BLUE, INK, ORANGE, figure_style

if TYPE_CHECKING:
    from bindscope.studies.framework.documents import Terms

SECTIONS = ("requires", "criterion", "control")


def draw_terms(terms: Terms, results: Mapping[str, xr.Dataset]) -> Figure:
    """A row a term: a point with its 95 % interval, the allowed range shaded; controls are hollow."""
    rows = [(section, term) for section in SECTIONS for term in getattr(terms, section)]
    with figure_style():
        figure = Figure(figsize=(7.2, 0.5 + 0.75 * len(rows)), layout="constrained")
        for axes, (section, term) in zip(figure.subplots(len(rows), 1, squeeze=False)[:, 0], rows, strict=True):
            _draw_term(axes, section, term, read_term(term, results[term.result]))
    return figure


def _draw_term(axes: Axes, section: str, term: Term, quantity: Quantity) -> None:
    low, high = ends_of(quantity)
    known = [
        each for each in (low, high, quantity.value, term.at_least, term.at_most) if each is not None and each == each
    ]
    left, right = min(known), max(known)
    if quantity.unit == "fraction":
        left, right = min(0.0, left), max(1.0, right)
    margin = 0.04 * (right - left or 1.0)
    axes.set_xlim(left - margin, right + margin)
    axes.axvspan(
        left - margin if term.at_least is None else term.at_least,
        right + margin if term.at_most is None else term.at_most,
        color=BLUE, alpha=0.12, lw=0,
    )  # fmt: skip
    if quantity.value == quantity.value:
        colour = ORANGE if section == "control" else BLUE
        axes.plot([low, high], [0, 0], color=colour, lw=2, solid_capstyle="butt")
        axes.plot(quantity.value, 0, "o", color=colour, markerfacecolor="white" if section == "control" else colour)
    axes.set_yticks([])
    axes.set_title(f"{section}: {term} {term.comparison}; {quantity.number}", loc="left", fontsize=7.5, color=INK)
