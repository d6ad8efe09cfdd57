"""What figures over training share: curves with bands along steps, before the run's phases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from bindscope.studies.framework.trajectory import phases_of
from bindscope.studies.plots.style import phase_colours, plot_interval


def shade_phases(axes: Axes, results: Mapping[str, xr.Dataset], phase_names: tuple[str, ...]) -> None:
    """A band behind each phase of the run's trajectory, where it has one."""
    if "trajectory" not in results:
        return
    colours = phase_colours(phase_names)
    for phase in phases_of(results["trajectory"]):
        axes.axvspan(phase.first_step, phase.last_step, color=colours[phase.name], alpha=0.1, linewidth=0)


def plot_over_steps(axes: Axes, dataset: xr.Dataset, name: str, colour: str, label: str, **style: Any) -> None:
    """One curve over (step) with its interval."""
    plot_interval(axes, dataset.step.values, dataset, name, colour, label=label, **style)
