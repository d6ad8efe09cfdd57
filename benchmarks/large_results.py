"""Memory and disk of a series of patch grids: 12 layers × 67 positions × 1,000 pairs × 500 checkpoints, and a real one.

    python benchmarks/large_results.py                     # the full size, with a stub in place of the model
    python benchmarks/large_results.py --run binding-deep  # a real one: every checkpoint of a shipped run, 64 pairs

The stub draws outcomes at random, which pack worse than real ones; everything else is what ``bindscope grids`` does: pairs
drawn from the task, chunks of pairs, means with bootstrap intervals, packing, files, keys and the reader. Each part runs
in a process of its own, so that the largest memory it ever had (``ru_maxrss``, interpreter and torch included) is its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import xarray as xr

from bindscope.measures.binding import pair_grids
from bindscope.questions.grids import Grids
from bindscope.questions.opened import Opened
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run
from bindscope.runs.manifest import KeptCheckpoint

N_LAYERS, N_POSITIONS = 12, 67
PARTS = ("write", "go on", "read all means", "read one pair")


def main() -> None:
    arguments = _read_arguments()
    if arguments.part:
        _do(arguments, Path(arguments.folder))
        return
    with TemporaryDirectory(dir=arguments.folder) as folder:
        print(f"{'part':<16}{'peak memory':>14}{'processor time':>18}", flush=True)
        for part in PARTS:
            again = [sys.executable, __file__, *sys.argv[1:], "--part", part, "--folder", folder]
            subprocess.run(again, check=True)
        files = sorted(Path(folder).rglob("*.nc"))
        size = sum(file.stat().st_size for file in files)
        print(f"{len(files)} files, {size / 1e6:,.0f} MB on disk, {size / len(files) / 1e6:.2f} MB each")


def _do(arguments: argparse.Namespace, folder: Path) -> None:
    """One part, and what it took."""
    torch.set_num_threads(1)
    real = arguments.run is not None
    opened = Opened.at(arguments.run) if real else stub_run(arguments.steps)
    question = Grids(run=opened.name, n=arguments.n or (64 if real else 1000))
    if not real:
        pair_grids.patch_model = stub_grid  # type: ignore[assignment]
    start = time.process_time()
    found = question.find(opened, [folder])
    if arguments.part in ("write", "go on"):
        found = question.answer(opened, [folder], jobs=1)
        assert len(found.measured) == (len(found.steps) if arguments.part == "write" else 0)
    elif arguments.part == "read all means":
        assert found.summary().sizes["step"] == len(opened.run.steps)
    else:
        assert found.pairs(found.steps[-1], pair=question.n - 1).pair_success.ndim == 2
    seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{arguments.part:<16}{peak:>10,.0f} MiB{seconds:>16.1f} s", flush=True)


def stub_run(n_steps: int) -> Opened:
    """A run of 16-line programs that says it has so many checkpoints, and has no weights."""
    run = Run.open(find_run("binding-laptop"))
    kept = {step: KeptCheckpoint(f"step_{step:08d}", f"{step:064x}", 0, "float32") for step in range(n_steps)}
    stub = Run(run.path, dataclasses.replace(run.manifest, checkpoints=kept), run.placement)
    return Opened("stub", stub, lambda step: step)  # type: ignore[arg-type, return-value]


def stub_grid(step: Any, pairs: Any, *_: object) -> xr.Dataset:
    """Outcomes at random, of the shape that patching the residual stream of a 12-layer model gives."""
    rng = np.random.default_rng([step, int(pairs.base_tokens.sum())])
    shape, dims = (N_LAYERS, N_POSITIONS, len(pairs)), ("layer", "position", "pair")
    moved = rng.standard_normal(shape, dtype=np.float32)
    success = (moved > 0.5).astype(np.float32)
    coords = {"layer": np.arange(N_LAYERS), "position": np.arange(N_POSITIONS)}
    return xr.Dataset({"success": (dims, success), "logit_difference": (dims, moved)}, coords)


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", help="a run to measure in earnest, such as binding-deep")
    parser.add_argument("--steps", type=int, default=500, help="checkpoints of the stub")
    parser.add_argument("--n", type=int, help="pairs; 1,000 of the stub, 64 of a run")
    parser.add_argument("--folder", help="where the files are put for as long as it takes")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
