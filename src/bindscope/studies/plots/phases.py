"""Strips over training with the phases of the run behind them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from bindscope.measures.phases import Phase
from bindscope.studies.framework.trajectory import family_of_dataset, phases_of
from bindscope.studies.plots.style import BLUE, CATEGORIES, INK, phase_colours, set_fraction_axis, set_step_axis


def start_strip(axes: Axes, steps: np.ndarray, trajectory: xr.Dataset | None, title: str) -> Sequence[Phase]:
    """An axis of steps with a title and, where the run's evaluations are known, its phases behind; these are returned."""
    axes.set_title(title, loc="left", fontsize=9, color=INK)
    if trajectory is None:
        set_step_axis(axes, steps)
        return ()
    family = family_of_dataset(trajectory)
    set_step_axis(axes, steps, family.step_scale)
    phases, colours = phases_of(trajectory), phase_colours(family.phase_names)
    for phase in phases:
        axes.axvspan(phase.first_step, phase.last_step, color=colours[phase.name], alpha=0.13, linewidth=0)
    return phases


def draw_learning(axes: Axes, trajectory: xr.Dataset, steps: np.ndarray) -> None:
    """What the run answers, over training: whether it follows chains where it has any, or the accuracy of its splits."""
    known = trajectory.sel(step=(trajectory.step >= steps[0]) & (trajectory.step <= steps[-1]))
    if "follows_chain" in trajectory:
        start_strip(axes, steps, trajectory, "answers where lines 1 and 2 mislead")
        for name, colour in (("follows_chain", BLUE), ("follows_early_lines", CATEGORIES[1])):
            axes.plot(known.step, known[name], color=colour, label=name.replace("_", " "))
    else:
        start_strip(axes, steps, trajectory, "accuracy of each split")
        for index, split in enumerate(known.split.values):
            axes.plot(
                known.step, known.split_accuracy.sel(split=split), color=CATEGORIES[index % len(CATEGORIES)],
                linewidth=1, label=str(split),
            )  # fmt: skip
    set_fraction_axis(axes)
    many = len(axes.lines) > 4
    axes.legend(loc="lower right" if many else "center left", ncols=3 if many else 1, fontsize=7)
