"""Figures of binding identifiers: what each intervention does, layer by layer, through training and at one checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bindscope.measures.binding.phases import PHASES
from bindscope.studies.plots.heat_map import add_colour_bar, draw_cells
from bindscope.studies.plots.over_training import shade_phases
from bindscope.studies.plots.style import (  # fmt: skip
    INK,
    MUTED,
    new_figure,
    ordered_colours,
    set_fraction_axis,
    set_step_axis,
    title_figure,
)

PANELS = (  # intervention, what is read of it, its control, in words
    ("factorised", "swapped", None, "taken from another program: follows"),
    ("exchanged", "kept", None, "moved to the other line: bindings kept"),
    ("mean", "swapped", "random vector", "mean difference added: swapped"),
    ("order", "swapped", "shuffled order", "order subspace exchanged: swapped"),
)
SHOWN_PARTS = ("name", "value")


def draw_identifiers(results: Mapping[str, xr.Dataset]) -> Figure:
    """A row for names and one for values, a column for each intervention, a curve for each layer; controls are dashed."""
    dataset = results["identifiers"]
    colours = ordered_colours(dataset.sizes["layer"])
    with new_figure(12.4, 5.6) as figure:
        panels = figure.subplots(2, len(PANELS), sharey=True)
        for row, part in enumerate(SHOWN_PARTS):
            for axes, (name, read, control, words) in zip(panels[row], PANELS):
                set_step_axis(axes, dataset.step.values)
                shade_phases(axes, results, PHASES)
                for layer, colour in enumerate(colours):
                    axes.plot(
                        dataset.step,
                        dataset[read].sel(intervention=name, part=part, layer=layer),
                        color=colour,
                        linewidth=1.4,
                    )
                    if control:
                        axes.plot(
                            dataset.step,
                            dataset[read].sel(intervention=control, part=part, layer=layer),
                            color=colour,
                            linewidth=0.9,
                            linestyle=":",
                        )
                set_fraction_axis(axes)
                axes.set_title(f"{part}: {words}", fontsize=8.5, loc="left", color=MUTED)
        keys = [Line2D([], [], color=colour, label=f"entering L{layer}") for layer, colour in enumerate(colours)]
        panels[0, 0].legend(
            handles=[*keys, Line2D([], [], color=INK, linestyle=":", label="control")], fontsize=7, loc="upper left"
        )
        n = int(dataset.attrs["n"])
        subtitle = (
            f"{dataset.attrs.get('run', '')} · two direct bindings of a program, {n} programs each · controls dotted"
        )
        title_figure(figure, "What swaps two bindings, and what leaves them\n", subtitle)
    return figure


def draw_checkpoint(dataset: xr.Dataset) -> Figure:
    """Heat maps at one checkpoint: interventions upwards, layers to the right; swapped on the left, kept on the right."""
    rows = [(name, part) for part in dataset.part.values for name in dataset.intervention.values]
    with new_figure(10.0, 1.5 + 0.24 * len(rows)) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, read in zip(panels, ("swapped", "kept")):
            cells = np.stack([dataset[read].sel(intervention=name, part=part).values for name, part in rows])
            known = np.isfinite(cells).any(1)
            labels = [f"{part}: {name}" for (name, part), has in zip(rows, known) if has]
            mesh = draw_cells(
                axes, cells[known], rows=labels, columns=dataset.layer.values, limits=(0.0, 1.0), top_down=True
            )
            axes.set_title(read, loc="left", fontsize=9, color=MUTED)
            axes.set_xlabel("entering layer")
        add_colour_bar(list(panels), mesh, "fraction of answers", percent=True)
        where = f"{dataset.attrs.get('run', '')} at step {int(dataset.attrs['step']):,}"
        title_figure(
            figure,
            "What swaps two bindings, and what leaves them\n",
            f"{where} · {int(dataset.attrs['n'])} programs each",
        )
    return figure
