"""Figure of the heads that move a value or a pointer: every head at every position of the chain, a panel for each thing moved."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from bindscope.studies.plots.heat_map import BOTH_WAYS, add_colour_bar, draw_cells
from bindscope.studies.plots.style import MUTED, new_figure, title_figure


def draw_moves(dataset: xr.Dataset) -> Figure:
    """``head`` of each ``what``: rows are heads from the first layer up, columns positions of the chain."""
    layers, heads = dataset.layer.values, dataset["index"].values
    positions = [str(name) for name in dataset.position.values]
    spelled = [str(token) for token in dataset.spelled.values] if "spelled" in dataset.coords else [""] * len(positions)
    columns = [f"{name}\n{token}" if token else name for name, token in zip(positions, spelled)]
    rows = [f"L{layer}.H{head}" for layer in layers for head in heads]
    whats = [str(what) for what in dataset.what.values]
    with new_figure(1.6 + 2.3 * len(whats), 1.2 + 0.16 * len(rows)) as figure:
        panels = figure.subplots(1, len(whats), squeeze=False, sharey=True)[0]
        for axes, what in zip(panels, whats):
            cells = dataset["head"].sel(what=what).transpose("layer", "index", "position").values
            mesh = draw_cells(
                axes, cells.reshape(len(rows), -1), rows=rows, columns=columns, colours=BOTH_WAYS, limits=(-1, 1)
            )
            axes.set_title("value" if what == "value" else f"name at {what}", fontsize=9, loc="left", color=MUTED)
            axes.tick_params(axis="both", labelsize=6)
            axes.set_yticks(np.arange(len(rows)), rows)
        add_colour_bar(list(panels), mesh, "effect of one head at one position")
        where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}; {dataset.attrs['pairs']}"
        title_figure(figure, str(dataset.attrs["finding"]), where)
    return figure
