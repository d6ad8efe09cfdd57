"""Plateau diagnostics over training, a strip each, with the range of the plateau's first half and where each leaves it."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.measures.diagnostics.announce import find_departure
from bindscope.studies.development.diagnostics.announce import judge_announcements
from bindscope.studies.development.diagnostics.measure import HEADLINES, read_headline
from bindscope.studies.framework.curves import NotMade, plateau_of
from bindscope.studies.framework.results import NotTestable
from bindscope.studies.plots.phases import draw_learning, start_strip
from bindscope.studies.plots.style import BLUE, INK, MUTED, new_figure, title_figure

LOGARITHMIC = ("fisher", "hessian")


def draw_diagnostics(found: Mapping[str, xr.Dataset]) -> Figure:
    """The answers on top, a strip for each diagnostic below; a dashed line is where the answers leave their range."""
    dataset, trajectory = found["diagnostics"], found.get("trajectory")
    names = [name for name in HEADLINES if _is_known(dataset, name)]
    steps = dataset.step.values
    answers, sentence = _read_announcements(found)
    with new_figure(8.6, 1.5 + 1.35 * (len(names) + (trajectory is not None))) as figure:
        strips = list(figure.subplots(len(names) + (trajectory is not None), 1, sharex=True, squeeze=False)[:, 0])
        if trajectory is not None:
            draw_learning(strips.pop(0), trajectory, steps)
        for axes, name in zip(strips, names):
            _draw_strip(axes, dataset, name, trajectory)
        for axes in figure.axes:
            if answers is not None:
                axes.axvline(answers, color=INK, linestyle="--", linewidth=0.9)
            axes.set_xlabel("training step" if axes is figure.axes[-1] else "")
        title_figure(figure, "Plateau diagnostics\n", f"{dataset.attrs.get('run', '')} · {sentence}")
    return figure


def draw_asked(dataset: xr.Dataset) -> Figure:
    """The figure of a question."""
    return draw_diagnostics({"diagnostics": dataset})


def _draw_strip(axes: Axes, dataset: xr.Dataset, name: str, trajectory: xr.Dataset | None) -> None:
    curve, steps = read_headline(dataset, name), dataset.step.values
    phases = start_strip(axes, steps, trajectory, HEADLINES[name][0])
    axes.fill_between(steps, curve.low, curve.high, color=BLUE, alpha=0.2, linewidth=0)
    axes.plot(steps, curve.value, color=BLUE, marker="o", markersize=2.5)
    if name in LOGARITHMIC:
        axes.set_yscale("symlog", linthresh=1.0)
        axes.set_ylim(bottom=0)
    plateau = plateau_of(phases)
    if plateau is None:
        return
    departure = find_departure(steps, curve.value.values, plateau)
    axes.axhspan(departure.low, departure.high, color=MUTED, alpha=0.15, linewidth=0)
    if departure.step is not None:
        at = float(curve.value.sel(step=departure.step))
        axes.plot(departure.step, at, "o", markersize=8, mfc="none", mec=INK)


def _read_announcements(found: Mapping[str, xr.Dataset]) -> tuple[int | None, str]:
    words = "○: leaves the range (grey) of the plateau's first half; dashed: the answers do"
    try:
        judged = judge_announcements(dict(found))
    except (NotTestable, KeyError):
        return None, words
    return int(judged.attrs["answers_depart"]), words


def _is_known(dataset: xr.Dataset, name: str) -> bool:
    try:
        read_headline(dataset, name)
    except NotMade:
        return False
    return True
