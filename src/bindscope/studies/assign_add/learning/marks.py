"""Spikes of a run as marks in its curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes

from bindscope.studies.plots.style import INK

if TYPE_CHECKING:
    from bindscope.measures.arithmetic.spikes import Spike


def mark_spikes(axes: Axes, spikes: Sequence[Spike]) -> None:
    """A band over each spike's steps with its number at the foot of the panel."""
    for spike in spikes:
        axes.axvspan(spike.before_step, spike.after_step, color=INK, alpha=0.16, linewidth=0.6, zorder=0)
        axes.text(
            spike.after_step,
            0.02,
            f" {spike.number}",
            transform=axes.get_xaxis_transform(),
            fontsize=8,
            fontweight="bold",
            color=INK,
            ha="left",
            va="bottom",
        )
