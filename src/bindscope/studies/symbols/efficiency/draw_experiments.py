"""The figure of each experiment of study 3."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from bindscope.studies.symbols.efficiency.draw_curves import draw_models


def draw_curves(dataset: xr.Dataset) -> Figure:
    """Every model over n, transformers beside simpler networks."""
    return draw_models(dataset, str(dataset.attrs.get("question", "How many training sequences are enough?")))
