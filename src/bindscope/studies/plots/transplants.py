"""A checkpoint with parts of another, beside both."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from bindscope.studies.plots.heat_map import add_colour_bar, draw_fraction_map
from bindscope.studies.plots.style import MUTED, figure_style, title_figure


def figure_transplant(dataset: xr.Dataset) -> Figure:
    """Accuracy in each split: the receiver, the receiver with each part, the donor."""
    rows = [str(part) for part in dataset.part.values]
    ends = [dataset[f"{end}_accuracy"].values[None] for end in ("receiver", "donor")]
    cells = np.concatenate([ends[0], dataset.accuracy.transpose("part", "split").values, ends[1]])
    names = [f"step {int(dataset.attrs['receiver']):,}", *(f"… with {row}" for row in rows)]
    with figure_style():
        figure = Figure(figsize=(7.6, 1.3 + 0.3 * len(cells)), layout="constrained")
        axes = figure.add_subplot()
        labels = [*names, f"step {int(dataset.attrs['donor']):,}"]
        mesh = draw_fraction_map(axes, cells, labels, [str(split) for split in dataset.split.values])
        for edge in (0.5, len(cells) - 1.5):
            axes.axhline(edge, color=MUTED, linewidth=1)
        add_colour_bar(axes, mesh, percent=True)
        words = f"{dataset.attrs.get('run', '')} · accuracy in per cent, {int(dataset.attrs['n'])} {dataset.attrs['counted']}"
        later = int(dataset.attrs["donor"]) >= int(dataset.attrs["receiver"])
        given, taking = ("a later", "an earlier") if later else ("an earlier", "a later")
        title_figure(figure, f"Parts of {given} checkpoint in {taking} one", words)
    return figure
