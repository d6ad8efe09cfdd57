"""Patch grids and training steps on this machine's GPU beside its processor, for whoever has one.

    python benchmarks/device.py
    python benchmarks/device.py --size paper --pairs 16 --rounds 3

Whichever of cpu, cuda and mps there are take turns with the same weights, pairs and programs; a GPU is waited for before the
clock is read. Medians of wall time are printed, a column for each device, with the difference of the grids' metrics from
the first device's. Without a GPU there is one column.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from statistics import median

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from bindscope.interventions.grids import head_grid, position_grid, residual_grid
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask
from bindscope.training.loss import batch_loss
from bindscope.training.memory import keep_freed_memory
from patching import GRIDS, SIZES, Setting, build_setting
from training_step import training_step

LINES, QUERIES = 16, 16


def main() -> None:
    options = read_options()
    torch.set_num_threads(options.threads or torch.get_num_threads())
    keep_freed_memory()
    setting, devices = build_setting(options.size, options.pairs), present_devices()
    print(
        f"{options.size}, {options.pairs} pairs, {torch.get_num_threads()} thread(s), {options.rounds} round(s), medians\n"
    )
    print(f"{'':22}" + "".join(f"{describe(device):>28}" for device in devices))
    models = {device: deepcopy(setting.model).to(device).eval() for device in devices}
    for grid in GRIDS:
        works = {device: lambda grid=grid, device=device: run_grid(setting, models[device], grid) for device in devices}
        report(f"{grid} grid", works, options.rounds, compare=True)
    report(
        "training step",
        {device: build_step(models[device], device, options.programs) for device in devices},
        options.rounds,
    )


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="laptop", help="the model of which preset")
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--programs", type=int, default=16, help="rows of a training step, of 16 queries each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of the processor (default: as torch is set)")
    return parser.parse_args()


def present_devices() -> list[torch.device]:
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    return [torch.device(name) for name, here in there.items() if here]


def describe(device: torch.device) -> str:
    return torch.cuda.get_device_name(device)[:26] if device.type == "cuda" else device.type


def run_grid(setting: Setting, model: Transformer, grid: str) -> np.ndarray:
    if grid == "residual":
        found = residual_grid(model, setting.contrast)
    elif grid == "head":
        found = head_grid(model, setting.contrast)
    else:
        found = position_grid(model, setting.contrast, setting.named)
    return found.logit_difference.values


def build_step(model: Transformer, device: torch.device, n_programs: int) -> Callable[[], None]:
    batch = BindingTask(lines=LINES, queries=QUERIES).sample_batch(np.random.default_rng(0), n_programs)
    return training_step(model.train(), lambda: batch_loss(model, batch))


def report(name: str, works: dict[torch.device, Callable[[], object]], rounds: int, compare: bool = False) -> None:
    """One row: everyone's median, and how far the others' numbers are from the first one's."""
    times: dict[torch.device, list[float]] = {device: [] for device in works}
    found = {device: work() for device, work in works.items()}
    for _ in range(rounds):
        for device, work in works.items():
            wait_for(device)
            start = time.perf_counter()
            work()
            wait_for(device)
            times[device].append(time.perf_counter() - start)
    first, *others = works
    cells = [f"{median(times[first]) * 1e3:.1f} ms"]
    for device in others:
        apart = f", off {np.nanmax(np.abs(found[device] - found[first])):.0e}" if compare else ""
        cells.append(
            f"{median(times[device]) * 1e3:.1f} ms, {median(times[first]) / median(times[device]):.1f} ×{apart}"
        )
    print(f"{name:22}" + "".join(f"{cell:>28}" for cell in cells), flush=True)


def wait_for(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


if __name__ == "__main__":
    main()
