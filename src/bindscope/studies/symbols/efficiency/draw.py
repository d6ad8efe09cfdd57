"""Figures of AS1, AS2, AS3 and AS7: telling equal symbols from different ones."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr
from matplotlib.figure import Figure

from bindscope.studies.symbols.efficiency.draw_curves import draw_models


def draw_transformer(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS1: the plain transformer, with a one-hot MLP beside it."""
    title = "AS1 · Enough sequences, and unseen symbols are answered"
    return draw_models(results["same-different"], title, ("plain", "one-hot-mlp"))


def draw_scaled_transformer(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS2: with and without identity scaling."""
    return draw_models(
        results["same-different"], "AS2 · Identity scaling saves sequences", ("plain", "both", "kq", "vo", "mimetic")
    )


def draw_mlps(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS3: two MLPs, with the transformer beside them."""
    title = "AS3 · MLPs learn nothing of unseen symbols"
    return draw_models(results["same-different"], title, ("one-hot-mlp", "embedding-mlp", "plain"))


def draw_relation_mlp(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS7: an MLP with and without XXᵀ."""
    return draw_models(results["same-different"], "AS7 · XXᵀ is what an MLP lacks", ("relation-mlp", "embedding-mlp"))
