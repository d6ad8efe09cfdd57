"""The panels of a trajectory figure, drawn together on a sheet or one by one for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.families import Family, find_family
from bindscope.measures.phases import Phase
from bindscope.studies.framework.trajectory import phases_of
from bindscope.studies.plots.curves import Panel, draw_splits, loss_panel
from bindscope.studies.plots.style import (
    INK,
    MUTED,
    StepScale,
    format_fraction,
    new_figure,
    phase_colours,
    set_step_axis,
)

WIDTH_OF_LETTER = 0.0185  # of a bold label, as a fraction of a panel's width


def figure_trajectory(dataset: xr.Dataset, phases: Sequence[Phase] | None = None, scale: StepScale = "auto") -> Figure:
    """The whole story of one run on one sheet. Phases are detected with the default criterion when none are given.

    >>> save_figure(figure_trajectory(trajectory_dataset(run.metrics, run.manifest.config)), Path("trajectory.svg"))
    """
    return draw_grid(dataset, phases_of(dataset) if phases is None else phases, scale)


def draw_grid(
    dataset: xr.Dataset, phases: Sequence[Phase], scale: StepScale = "auto", names: Sequence[str] | None = None
) -> Figure:
    """The panels of a run, all or those named, on one sheet, two beside each other."""
    panels = [panel for panel in trajectory_panels(dataset) if names is None or panel.name in names]
    n_rows = (len(panels) + 1) // 2
    with new_figure(10.4, 0.4 + 3.25 * n_rows) as figure:
        figure.get_layout_engine().set(h_pad=0.1, w_pad=0.12)  # type: ignore[union-attr, call-arg]
        for index, panel in enumerate(panels):
            _draw_panel(figure.add_subplot(n_rows, 2, index + 1), panel, dataset, phases, scale, titled=True)
    return figure


def draw_separately(
    dataset: xr.Dataset, phases: Sequence[Phase], scale: StepScale = "auto"
) -> list[tuple[Panel, Figure]]:
    """Each panel as a small figure without its title, for a page that flows."""
    drawn = []
    for panel in trajectory_panels(dataset):
        with new_figure(4.6, 2.8) as figure:
            _draw_panel(figure.add_subplot(), panel, dataset, phases, scale, titled=False)
        drawn.append((panel, figure))
    return drawn


def trajectory_panels(dataset: xr.Dataset) -> list[Panel]:
    """What is worth seeing of a run: what its family says, or loss and accuracy of its splits."""
    panels = _family_of(dataset).panels(dataset)
    return split_panels(dataset) if panels is None else list(panels)


def split_panels(dataset: xr.Dataset) -> list[Panel]:
    """The loss of every split, and its accuracy where it has one."""
    panels = [loss_panel(dataset)]
    if np.isfinite(dataset.split_accuracy).any():
        splits, note = list(dataset.split.values), _family_of(dataset).accuracy_note
        panels.append(Panel("accuracy", "Accuracy", note, lambda axes: draw_splits(axes, dataset, splits)))
    return panels


def _family_of(dataset: xr.Dataset) -> Family:
    return find_family(str(dataset.attrs["family"]))


def _draw_panel(
    axes: Axes, panel: Panel, dataset: xr.Dataset, phases: Sequence[Phase], scale: StepScale, titled: bool
) -> None:
    family = _family_of(dataset)
    colours = phase_colours(family.phase_names)
    set_step_axis(axes, dataset.step.values, family.step_scale if scale == "auto" else scale)
    panel.draw(axes)
    if panel.shaded:
        _shade_phases(axes, phases, colours)
        family.mark(axes, dataset)
    if panel.name == "accuracy":
        _label_phases(axes, phases, colours)
    if titled:
        axes.text(0, 1.225, panel.title, transform=axes.transAxes, fontsize=11, fontweight="bold", color=INK)
        axes.text(0, 1.15, panel.subtitle, transform=axes.transAxes, fontsize=8, color=MUTED)


def _shade_phases(axes: Axes, phases: Sequence[Phase], colours: Mapping[str, str]) -> None:
    for phase in phases:
        axes.axvspan(phase.first_step, phase.last_step, color=colours[phase.name], alpha=0.13, linewidth=0)


def _label_phases(axes: Axes, phases: Sequence[Phase], colours: Mapping[str, str]) -> None:
    """Each phase's name and plateau above its band, moved aside where a band is narrower than its words."""
    words = [f"{phase.name} {format_fraction(phase.accuracy)}" for phase in phases]
    widths = np.array([WIDTH_OF_LETTER * (len(word) + 2) for word in words])  # with a gap behind
    ends = [axes.transData.transform([(p.first_step, 0), (p.last_step, 0)])[:, 0].mean() for p in phases]
    centres = np.array([axes.transAxes.inverted().transform([(end, 0)])[0, 0] for end in ends])
    left = centres - widths / 2
    for index in range(len(phases)):  # from the left, none begins before the one before it ends
        left[index] = max(left[index], left[index - 1] + widths[index - 1] if index else 0.0)
    for index in reversed(range(len(phases))):  # from the right, none ends beyond the next one or the panel
        limit = left[index + 1] if index + 1 < len(phases) else 1.0
        left[index] = min(left[index], limit - widths[index])
    for phase, word, x in zip(phases, words, left):
        colour = colours[phase.name]
        axes.text(x, 1.035, word, transform=axes.transAxes, fontsize=8, color=colour, fontweight="bold")
