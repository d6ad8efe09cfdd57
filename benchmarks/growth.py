"""How the cost of our patch grids grows, measured beside what is counted.

    python benchmarks/growth.py --out docs/figures/growth.svg
    python benchmarks/growth.py --memory

The residual grid of counterfactual pairs, with one thing varied and everything else held: tokens of a row (programs of 4 to
26 lines), layers, pairs, parameters (the width) and checkpoints of a shipped run, read from disk one after another. *Predicted* is how the
counted floating-point operations grow (``counted.py``), *measured* how processor time does, both as the slope of a
straight line in the logarithms. ``--memory`` prints the peak memory of our grids and of plain hooks over the number of pairs instead.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from bindscope.interventions.contrast import Contrast, contrast_pairs
from bindscope.interventions.grids import residual_grid
from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run
from bindscope.tasks.binding import BindingTask
from bindscope.tasks.binding.pairs import sample_root_pairs
from bindscope.training.memory import keep_freed_memory
from counted import Count
from patching import GRIDS, ask_memory
from turns import choose_clock, medians, note, time_in_turns

SHAPE = dict(n_layers=6, d_model=128, n_heads=4, d_head=32, d_mlp=512)
LINES, PAIRS, SHIPPED = 16, 16, "binding-deep"
AXES = {
    "tokens of a row": (4, 8, 16, 26),  # in lines
    "layers": (3, 6, 9, 12),
    "pairs": (8, 16, 32, 64),
    "parameters": (64, 128, 256, 384),  # in widths
    "checkpoints": (1, 2, 4),
}


@dataclass(frozen=True)
class Point:
    """One grid, or those of several checkpoints: its coordinate on the axis, what is counted, and the work."""

    x: float
    counted: float
    work: Callable[[], object]


def main() -> None:
    options = read_options()
    torch.set_num_threads(1)
    if options.memory:
        report_memory(options)
        return
    torch.set_grad_enabled(False)
    keep_freed_memory()
    curves = {}
    print(f"{'':18}{'from':>12}{'to':>12}{'measured':>10}{'predicted':>11}   GFLOP/s at both ends")
    for axis in options.axes:
        points = list(make_points(axis))
        turns = time_in_turns(
            {str(i): point.work for i, point in enumerate(points)}, options.rounds, choose_clock("cpu")
        )
        seconds = list(medians(turns).values())
        curves[axis] = points, seconds
        x, counted = np.array([point.x for point in points]), np.array([point.counted for point in points])
        ends = counted[[0, -1]] / np.array(seconds)[[0, -1]] / 1e9
        print(
            f"{axis:18}{x[0]:12,.0f}{x[-1]:12,.0f}{slope(x, seconds):10.2f}{slope(x, counted):11.2f}   {ends[0]:.0f}, {ends[1]:.0f}",
            flush=True,
        )
        remark = f"slope {slope(x, seconds):.2f} measured, {slope(x, counted):.2f} counted, {x[0]:,.0f} to {x[-1]:,.0f}"
        note("growth", f"growth with {axis}", seconds=seconds[-1], remark=remark)
    if options.out:
        draw(curves, options.out)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axes", nargs="+", choices=list(AXES), default=list(AXES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="the figure")
    parser.add_argument("--memory", action="store_true", help="peak memory over pairs instead of time")
    parser.add_argument(
        "--size", choices=("laptop", "paper"), default="laptop", help="of the model whose memory is asked"
    )
    parser.add_argument("--most-pairs", type=int, default=4096, help="with --memory")
    return parser.parse_args()


def make_points(axis: str) -> Iterator[Point]:
    for value in AXES[axis]:
        if axis == "tokens of a row":
            yield grid_point(lambda config, contrast: contrast.base.shape[1], lines=value)
        elif axis == "pairs":
            yield grid_point(lambda config, contrast: len(contrast), pairs=value)
        elif axis == "layers":
            yield grid_point(lambda config, contrast: config.n_layers, n_layers=value)
        elif axis == "parameters":
            shape = dict(d_model=value, n_heads=max(1, value // 32), d_mlp=4 * value)
            yield grid_point(lambda config, contrast: config.n_parameters, **shape)
        else:
            yield checkpoints_point(value)


def grid_point(
    x: Callable[[ModelConfig, Contrast], float], lines: int = LINES, pairs: int = PAIRS, **shape: int
) -> Point:
    task = BindingTask(lines=lines, max_depth=min(4, lines - 1))
    config = ModelConfig(
        d_vocab=len(task.vocabulary), n_positions=task.n_positions, init=InitConfig(scheme="fan_in"), **(SHAPE | shape)
    )
    model = Transformer(config, torch.Generator().manual_seed(0)).eval()
    contrast = draw_pairs(task, pairs)
    counted = Count(config, contrast).grid("residual")
    return Point(x(config, contrast), counted, lambda: residual_grid(model, contrast))


def checkpoints_point(n: int) -> Point:
    """Grids of the last n checkpoints of a shipped run, each read from disk."""
    run = Run.open(find_run(SHIPPED))
    contrast = draw_pairs(run.config.task, PAIRS)
    steps = run.steps[-n:]

    def work() -> None:
        for step in steps:
            residual_grid(run.checkpoint(step), contrast)

    return Point(len(steps), len(steps) * Count(run.config.model, contrast).grid("residual"), work)


def draw_pairs(task: BindingTask, n: int) -> Contrast:
    return contrast_pairs(sample_root_pairs(task, np.random.default_rng(0), n))


def slope(x: np.ndarray, y: np.ndarray | list[float]) -> float:
    """Of the straight line nearest to log y over log x."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def draw(curves: dict[str, tuple[list[Point], list[float]]], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(3.0 * len(curves), 2.9), layout="constrained", squeeze=False)
    for ax, (axis, (points, seconds)) in zip(axes[0], curves.items()):
        x, counted = np.array([point.x for point in points]), np.array([point.counted for point in points])
        rate = np.exp(np.mean(np.log(counted) - np.log(seconds)))
        ax.loglog(x, counted / rate, color="0.6", label=f"counted: {slope(x, counted):.2f}")
        ax.loglog(x, seconds, "o", color="#0072b2", markersize=4, label=f"measured: {slope(x, seconds):.2f}")
        ax.set(xlabel=axis, title=axis)
        ax.legend(frameon=False, fontsize="small", title="slope", title_fontsize="small")
    axes[0][0].set_ylabel("processor time of the grid (s)")
    figure.savefig(path)


def report_memory(options: argparse.Namespace) -> None:
    """Megabytes beyond the loaded model, a new process each."""
    print(f"{options.size}, MB   " + "".join(f"{grid + ', ours':>16}{'plain hooks':>14}" for grid in GRIDS))
    options.pairs = 8
    while options.pairs <= options.most_pairs:
        found = [ask_memory(name, grid, options) for grid in GRIDS for name in ("ours", "plain hooks")]
        print(
            f"{options.pairs:5} pairs   "
            + "".join(f"{mb:>{width}}" for mb, width in zip(found, (16, 14) * len(GRIDS))),
            flush=True,
        )
        options.pairs *= 4 if options.pairs < 512 else 8


if __name__ == "__main__":
    main()
