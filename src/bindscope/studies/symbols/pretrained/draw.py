"""Figure of AS11: test loss over n of GPT-2 from scratch and pretrained, beside the paper's points; and over training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bindscope.studies.framework.experiments import count_runs
from bindscope.studies.plots.style import BLUE, CATEGORIES, GREY, MUTED, ORANGE, name_ticks, new_figure, title_figure
from bindscope.studies.symbols.pretrained.compare import Shape, compare_pretrained, model_curve, shapes_of
from bindscope.studies.symbols.pretrained.define import PRETRAINED, SCRATCH, TORCH
from bindscope.studies.symbols.published import GPT2_PRETRAINED, GPT2_SCRATCH

if TYPE_CHECKING:
    from bindscope.studies.symbols.published import Points

COLOURS = {SCRATCH: BLUE, TORCH: CATEGORIES[2], PRETRAINED: ORANGE}
MARKERS = {SCRATCH: "o", TORCH: "s", PRETRAINED: "D"}
HIGHEST = 2.6  # of the loss axes; a confident wrong answer costs up to 4


def draw_pretrained(results: Mapping[str, xr.Dataset]) -> Figure:
    """AS11, from the results of the study."""
    return draw_gpt2(results["gpt2"])


def draw_gpt2(dataset: xr.Dataset) -> Figure:
    """Left: the end of training, by n. Right: unseen symbols over training, at the largest n that all models share."""
    with new_figure(10.4, 4.0) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        names = _names(dataset)
        _draw_ends(left, dataset, names)
        _draw_training(right, dataset, names)
        title_figure(
            figure,
            "AS11 · Pretraining replaces data",
            f"{count_runs(dataset)} runs on ABA/ABB, one small mark a seed; hollow: the paper's GPT-2; unseen symbols, knowing nothing = 1",
        )
    return figure


def _names(dataset: xr.Dataset) -> dict[tuple[str, Shape], str]:
    """What is drawn: (model, shape) → its name in the legend."""
    comparison = compare_pretrained(dataset)
    words = {
        SCRATCH: "from scratch",
        TORCH: "from scratch, torch's start",
        PRETRAINED: "pretrained" if comparison is None or comparison.is_gpt2 else "stand-in, pretrained on other text",
    }
    return {(model, shape): f"{word} ({shape})" for model, word in words.items() for shape in shapes_of(dataset, model)}


def _draw_ends(axes: Axes, dataset: xr.Dataset, names: Mapping[tuple[str, Shape], str]) -> None:
    sizes: set[int] = set()
    for (model, shape), name in names.items():
        curve = model_curve(dataset, model, shape)
        dash = "-" if shape.layers < 12 else (0, (5, 1.5))
        axes.plot(curve.n, curve.values, color=COLOURS[model], linestyle=dash, lw=1.5, label=name)  # type: ignore[arg-type]
        for point in curve.points:
            axes.plot(
                [point.n] * len(point.seeds), np.minimum(point.seeds, HIGHEST), MARKERS[model], ms=3.5,
                color=COLOURS[model], alpha=0.7, clip_on=False,
            )  # fmt: skip
        sizes |= set(map(int, curve.n))
    for points, model, word in ((GPT2_SCRATCH, SCRATCH, "from scratch"), (GPT2_PRETRAINED, PRETRAINED, "pretrained")):
        _draw_paper(axes, points, model, f"the paper's GPT-2, {word}")
        sizes |= set(points)
    axes.axhline(1, color=GREY, lw=0.8, linestyle=(0, (2, 2)))
    axes.axhline(0.5, color=GREY, lw=0.6)
    axes.set_xscale("log", base=2)
    name_ticks(axes.xaxis, sorted(sizes))
    axes.tick_params(axis="x", labelsize=8)
    axes.set_ylim(0, HIGHEST)
    axes.set_xlabel("n: training symbols and sequences")
    axes.set_ylabel("test loss")
    axes.legend(loc="upper right", fontsize=7.5, labelspacing=0.35)


def _draw_paper(axes: Axes, points: Points, model: str, label: str) -> None:
    axes.plot(
        list(points), list(points.values()), MARKERS[model], ms=8, mew=1.4, mfc="none", mec=COLOURS[model],
        linestyle="none", label=label, clip_on=False,
    )  # fmt: skip


def _draw_training(axes: Axes, dataset: xr.Dataset, names: Mapping[tuple[str, Shape], str]) -> None:
    small = [key for key in names if key[1] == min(shape for _, shape in names)]
    shared = set.intersection(*(set(map(int, model_curve(dataset, *key).n)) for key in small))
    if not shared:
        axes.set_axis_off()
        return
    n = max(shared)
    for model, shape in small:
        labels = (("model", model), ("n", n), ("layers", shape.layers), ("width", shape.width))
        mask = np.logical_and.reduce([dataset[name].values == value for name, value in labels])
        rows = dataset.isel(variant=int(np.flatnonzero(mask)[0]))
        for seed in dataset.seed.values:
            for split, dash in (("test", "-"), ("train", (0, (1.5, 1.2)))):
                curve = rows.split_loss.sel(seed=seed, split=split).dropna("step")
                axes.plot(curve.step, np.minimum(curve, HIGHEST), color=COLOURS[model], linestyle=dash, lw=1)
    axes.axhline(1, color=GREY, lw=0.8, linestyle=(0, (2, 2)))
    axes.set_ylim(0, HIGHEST)
    axes.set_xlabel("step")
    axes.text(
        0, 1.03, f"n = {n:,} over training: unseen symbols (solid), training sequences (dotted)",
        transform=axes.transAxes, fontsize=8, color=MUTED,
    )  # fmt: skip
