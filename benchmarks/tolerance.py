"""What leaving out hardly changed positions saves in a residual grid on trained weights, and what it costs in exactness.

    python benchmarks/tolerance.py --pairs 16
    python benchmarks/tolerance.py --size paper --pairs 8 --rounds 1
    python benchmarks/tolerance.py --run binding-plain --tolerances

The model is the shipped run ``binding-deep`` (12 layers, d 128), or the same function at the paper's size (d 512, 8 heads of 64,
MLP 2048; ``widened.py``). Printed are

- how many of the positions that an exact grid computes move by more than a fraction of their norm, and how much faster a grid
  could be at most that computes no others: projections where a stream moved, output and MLP where what leaves moved;
- for each tolerance in logits: the matrix products done (``counted.py``) and the time, each against the exact grid's, both with the
  error's own measurement; the error that it states; and that over all cells.

Exact and tolerant grids take turns; medians are printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
import xarray as xr

sys.path.insert(0, str(Path(__file__).parent))
from bindscope.interventions.chunks import run_chunks
from bindscope.interventions.contrast import Contrast, contrast_pairs
from bindscope.interventions.engine import Sweep
from bindscope.interventions.grids import residual_grid
from bindscope.model.transformer import Transformer
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run
from bindscope.tasks.binding import BindingTask
from bindscope.tasks.binding.pairs import sample_root_pairs
from bindscope.training.memory import keep_freed_memory
from counted import Count, count_done
from turns import choose_clock, compare, medians, note, take_turns
from widened import widen

FRACTIONS = (1e-6, 1e-5, 1e-4, 1e-3)  # of a stream's norm


def main() -> None:
    options = read_options()
    torch.set_num_threads(1)
    keep_freed_memory()
    contrast = draw_pairs(options.pairs)
    model = load_model(options.run, options.size, contrast)
    print(
        f"{options.run}, {options.size} size, {options.pairs} pairs, one thread, {options.rounds} round(s), {options.clock} time, medians\n"
    )
    report_moves(model, contrast.take(slice(0, 2)))
    if options.tolerances:
        report_tolerances(model, contrast, options)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--run", default="binding-deep", help="whose weights; made wider, it must have no identity scaling"
    )
    parser.add_argument("--size", choices=("own", "paper"), default="own", help="paper: four times as wide")
    parser.add_argument("--pairs", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3, help="how often everyone has a turn")
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--tolerances", type=float, nargs="*", default=[1e-4, 1e-3, 1e-2], help="in logits")
    return parser.parse_args()


def draw_pairs(n_pairs: int) -> Contrast:
    task = BindingTask(lines=16, max_depth=4)
    return contrast_pairs(sample_root_pairs(task, np.random.default_rng(0), n_pairs, first_root_line=3))


def load_model(run: str, size: str, contrast: Contrast) -> Transformer:
    model = Run.open(find_run(run)).checkpoint().eval()
    if size == "own":
        return model
    wide = widen(model, 4)
    with torch.no_grad():
        mine, theirs = wide(contrast.base), model(contrast.base)
    difference = float((mine - theirs).abs().max() / theirs.abs().max())
    if difference > 1e-4:
        raise SystemExit(f"the wider model computes something else: its logits differ by {difference:.2g}.")
    print(f"logits of the wider model differ by {difference:.1e} of the largest")
    return wide


def report_moves(model: Transformer, contrast: Contrast) -> None:
    moved, swept, last = count_moves(model, contrast)
    config, inner = model.config, model.config.n_heads * model.config.d_head
    side, mlp = 2 * config.d_model * inner, Count(config, contrast).mlp
    attention = 4 * (contrast.at + 1) * inner * (swept[:-1].sum() + last)  # every key that a row has, hidden or not

    def products(entering: np.ndarray, leaving: np.ndarray) -> float:  # positions, by layer
        return float(side * (3 * entering[:-1].sum() + 2 * entering[-1] + last) + (side + mlp) * leaving.sum())

    exact = products(swept, np.append(swept[1:], last)) + attention
    print("positions that a change moves by more than a fraction of their norm, of those computed")
    for index, fraction in enumerate(FRACTIONS):
        least = products(moved[:, index], np.append(moved[1:, index], last)) + attention
        share = moved[:, index].sum() / swept.sum()
        print(f"  {fraction:<8g}{share:8.1%}   at most {exact / least:.2f} × as fast")
    print(flush=True)


@torch.no_grad()
def count_moves(model: Transformer, contrast: Contrast) -> tuple[np.ndarray, np.ndarray, int]:
    """Of all cells, by layer: positions that entered it moved [layer, fraction], all that did [layer]; and how many cells."""
    n_layers = model.config.n_layers
    moved, swept, n_cells = np.zeros((n_layers, len(FRACTIONS))), np.zeros(n_layers), 0
    for chunk in run_chunks(model, contrast):
        for pair, first in enumerate(chunk.first.tolist()):
            for position in range(first, contrast.at + 1):
                rows = slice(pair, pair + 1)
                starts = {n: chunk.source.stream[n][None, rows, position : position + 1] for n in range(1, n_layers)}
                n_cells += len(starts)
                streams = Sweep(chunk.base.parts, contrast.at, position, rows).pass_layers(chunk.base, starts)
                for layer, x in zip(range(1, n_layers), streams):  # leaving it; the last one yields logits' streams
                    if layer + 1 < n_layers:
                        cached = chunk.base.stream[layer + 1][rows, position:]
                        change = (x - cached).norm(dim=-1) / cached.norm(dim=-1)
                        moved[layer + 1] += [int((change > fraction).sum()) for fraction in FRACTIONS]
                        swept[layer + 1] += change.numel()
                        moved[layer + 1] += 1  # the cell that starts there, at its own position
                        swept[layer + 1] += change.shape[2]
                moved[1] += 1
                swept[1] += contrast.at + 1 - position
    return moved, swept, n_cells


def report_tolerances(model: Transformer, contrast: Contrast, options: argparse.Namespace) -> None:
    clock = choose_clock(options.clock)
    grids: dict[float, xr.Dataset] = {}

    def measure(tolerance: float) -> float:
        start = clock()
        grids[tolerance] = residual_grid(model, contrast, tolerance=tolerance)
        return clock() - start

    contenders = {str(t): lambda t=t: measure(t) for t in (0.0, *options.tolerances)}  # type: ignore[misc]
    turns = take_turns(contenders, options.rounds)
    seconds = medians(turns)
    few = contrast.take(slice(0, 2))
    products = {t: count_done(lambda t=t: residual_grid(model, few, tolerance=t)) for t in grids}  # type: ignore[misc]
    print(f"exact: {seconds['0.0']:.2f} s")
    for tolerance in options.tolerances:
        grid, exact = grids[tolerance], grids[0.0]
        faster, fewer = seconds["0.0"] / seconds[str(tolerance)], products[0.0] / products[tolerance]
        error = float(np.nanmax(np.abs(grid.logit_difference.values - exact.logit_difference.values)))
        other = float((grid.success.values != exact.success.values).mean())
        print(
            f"tolerance {tolerance:g}: {seconds[str(tolerance)]:.2f} s, {faster:.2f} × as fast with {fewer:.2f} × fewer products; "
            f"stated over {grid.attrs['n_checked']} cells: logits {grid.attrs['error_of_logits']:.2g}, "
            f"logit_difference {grid.attrs['error_of_logit_difference']:.2g}; "
            f"over all: logit_difference {error:.2g}, success other in {other:.2%}",
            flush=True,
        )
        note(
            "tolerance",
            f"residual grid of {options.run}, {options.size} size, tolerance {tolerance:g} logits",
            ratio=compare(turns, "0.0", str(tolerance)),
            peer="our exact grid",
            seconds=seconds[str(tolerance)],
            remark=f"largest error of any cell {error:.1e}, stated {grid.attrs['error_of_logit_difference']:.1e}",
        )


if __name__ == "__main__":
    main()
