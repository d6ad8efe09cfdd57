"""Figures of AS4, AS5, AS6 and AS10: printing, repetition and majority."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr
from matplotlib.figure import Figure

from bindscope.studies.symbols.efficiency.draw_curves import draw_models


def draw_print_real(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS4: printing a number."""
    return draw_models(results["print-real"], "AS4 · Printing a number takes fewer programs with KQ")


def draw_print_symbolic(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS5: printing a value never seen."""
    return draw_models(results["print-symbolic"], "AS5 · Printing a value never seen takes both scalings")


def draw_repetition(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS6: ABA or ABB."""
    return draw_models(results["aba-abb"], "AS6 · Repetition is seen by comparing, that is with KQ")


def draw_majority(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS10: a majority of six places."""
    return draw_models(results["majority"], "AS10 · A majority is seen with scaling only")
