"""The figure of two hypotheses: for each variable, how many patched answers follow it, layer by layer."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from bindscope.studies.plots.heat_map import add_colour_bar, draw_cells
from bindscope.studies.plots.style import INK, figure_style


def draw_hypotheses(dataset: xr.Dataset) -> Figure:
    """A heat map a hypothesis: variables and depths upwards, layers to the right; the best layer is marked."""
    names = [str(name) for name in dataset.hypothesis.values]
    with figure_style():
        figure = Figure(figsize=(1.6 + 4.2 * len(names), 1.6 + 0.3 * dataset.sizes["site"] / 1.5), layout="constrained")
        for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
            own = dataset.isel(site=np.flatnonzero(dataset.site_hypothesis.values == name))
            score = float(dataset.score.sel(hypothesis=name, condition="model"))
            axes.set_title(f"{name}: {score:.2f}", loc="left", fontsize=9, color=INK)
            if not own.sizes["site"]:
                axes.text(0.5, 0.5, "predicts nothing that the other does not", ha="center", transform=axes.transAxes)
                axes.set_axis_off()
                continue
            mesh = draw_cells(axes, own.followed.sel(condition="model").values, colours="cividis", limits=(0.0, 1.0))
            add_colour_bar(axes, mesh, "answers that follow it", percent=True)
            axes.plot(own.best_layer.values, range(own.sizes["site"]), "o", markersize=4, mfc="none", mec="white")
            labels = [f"{v} @ {p}, depth {d}" for v, p, d in zip(own.site_variable.values, own.site_position.values, own.site_depth.values)]  # fmt: skip
            axes.set_yticks(range(len(labels)), labels, fontsize=7)
            axes.set_xticks(range(own.sizes["layer"]), [str(layer) for layer in own.layer.values])
            axes.set_xlabel("residual stream entering layer")
    return figure
