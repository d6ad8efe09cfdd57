"""How fast patch grids are, ours beside other libraries on the same weights and pairs.

    python benchmarks/patching.py --size laptop --pairs 64
    python benchmarks/patching.py --size paper --pairs 16 --cells 6 --rounds 1

Three grids over counterfactual pairs of 16-line programs whose roots stand on line 3 or later: *residual* (every layer ×
all 67 positions), *head* (every layer × head, all positions) and *chain* (every layer × the right-hand sides of the
queried chain, the query and the colon). A peer runs the model once a cell, all pairs that have the position in one batch,
and takes the source's activations from one run. Of large grids peers compute a random sample of ``--cells`` cells, and
its time is scaled to the whole grid; ours is always whole, and includes the metrics. Every sampled cell must agree with
ours to 1e-5 of the largest logit before anything is timed. Contenders take turns; medians are printed. The *bound* is the ratio of
the floating-point operations of whole runs to those that a grid cannot do without (``counted.py``), and *of GEMM peak* divides the latter by
what the best of two ``torch.mm`` would do in our time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))
from bindscope.interventions.columns import residual_columns
from bindscope.interventions.contrast import Contrast, contrast_pairs
from bindscope.interventions.grids import head_grid, position_grid, residual_grid
from bindscope.interventions.replacement import patch_heads
from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.convert import export_hugging_face
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask
from bindscope.tasks.binding.pairs import CounterfactualPairs, sample_root_pairs
from bindscope.tasks.binding.structure import named_positions
from bindscope.training.memory import keep_freed_memory
from counted import Count, count_done
from patching_peers import PEERS, Peer
from training_profile import time_gemm
from turns import OURS, Clock, choose_clock, compare, fastest, medians, note, take_turns

SIZES = {
    "laptop": dict(n_layers=6, d_model=64, n_heads=2, d_head=32, d_mlp=256),  # binding-plain
    "paper": dict(n_layers=12, d_model=512, n_heads=8, d_head=64, d_mlp=2048, bias=False),
}
LINES = 16
GRIDS = ("residual", "head", "chain")
GOALS = {"laptop": {"residual": 12, "head": 3, "chain": 6.5}, "paper": {"residual": 10, "head": 3, "chain": 6.5}}


@dataclass(frozen=True)
class Setting:
    """A model, pairs for it, and the cells of every grid."""

    model: Transformer
    pairs: CounterfactualPairs
    contrast: Contrast

    @property
    def named(self) -> dict[str, np.ndarray]:
        found = named_positions(self.pairs)
        return {name: column for name, column in found.items() if name.startswith("rhs") or name in ("query", "colon")}

    def cells(self, grid: str) -> list[tuple[int, int | str]]:
        second: dict[str, list] = {
            "residual": list(range(self.contrast.base.shape[1])),
            "head": list(range(self.model.config.n_heads)),
            "chain": list(self.named),
        }
        return [(layer, other) for layer in range(self.model.config.n_layers) for other in second[grid]]

    def positions(self, grid: str, position: int | str) -> tuple[Tensor, Tensor]:
        """The pairs that have this position, and where it is in each."""
        column = np.full(len(self.pairs), position) if grid == "residual" else self.named[str(position)]
        pairs = np.flatnonzero(column >= 0)
        return torch.from_numpy(pairs), torch.from_numpy(column[pairs])


def main() -> None:
    options = read_options()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    setting = build_setting(options.size, options.pairs)
    with tempfile.TemporaryDirectory() as directory:
        export_hugging_face(setting.model, Path(directory) / "model")
        if options.memory_of:
            print(measure_memory(setting, Path(directory) / "model", *options.memory_of, options.cells))
            return
        keep_freed_memory()  # for everyone
        peers = {name: PEERS[name](Path(directory) / "model") for name in options.peers}
        print(
            f"{options.size}, {options.pairs} pairs, {options.threads} thread(s), {options.rounds} round(s), ", end=""
        )
        print(f"{options.clock} time, medians\n")
        for grid in options.grids:
            report_grid(setting, grid, peers, options)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="laptop", help="the model of which preset")
    parser.add_argument("--pairs", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="how often everyone has a turn")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--clock", choices=("cpu", "wall"), default="cpu", help="cpu: processor time, for a busy machine"
    )
    parser.add_argument("--cells", type=int, default=24, help="how many cells of a grid a peer computes at most")
    parser.add_argument("--grids", nargs="+", choices=GRIDS, default=list(GRIDS))
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--no-memory", action="store_true", help="leave out the peak memory, which takes new processes")
    parser.add_argument("--memory-of", nargs=2, metavar=("CONTENDER", "GRID"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.clock == "cpu" and options.threads > 1:
        parser.error("--clock cpu adds up the time of all threads: use it with --threads 1.")
    return options


def build_setting(size: str, n_pairs: int) -> Setting:
    task = BindingTask(lines=LINES, max_depth=4)
    config = ModelConfig(
        d_vocab=len(task.vocabulary),
        n_positions=task.n_positions,
        init=InitConfig(scheme="fan_in"),
        **SIZES[size],  # type: ignore[arg-type]
    )
    model = Transformer(config, torch.Generator().manual_seed(0)).eval()
    return with_pairs(model, n_pairs)


def with_pairs(model: Transformer, n_pairs: int) -> Setting:
    task = BindingTask(lines=LINES, max_depth=4)
    pairs = sample_root_pairs(task, np.random.default_rng(0), n_pairs, first_root_line=3)
    return Setting(model, pairs, contrast_pairs(pairs))


def report_grid(setting: Setting, grid: str, peers: dict[str, Peer], options: argparse.Namespace) -> None:
    cells = setting.cells(grid)
    rng = np.random.default_rng(1)
    sample = [cells[i] for i in sorted(rng.choice(len(cells), min(options.cells, len(cells)), replace=False))]
    check_agreement(setting, grid, peers, sample)
    clock = choose_clock(options.clock)
    contenders: dict[str, Callable[[], float]] = {OURS: lambda: run_ours(setting, grid, clock)}
    for name, peer in peers.items():
        contenders[name] = lambda peer=peer: run_peer(setting, grid, peer, sample, clock)  # type: ignore[misc]
    turns = take_turns(contenders, options.rounds)
    seconds, peer = medians(turns), fastest(turns)
    said = "" if len(sample) == len(cells) else f", of which peers computed {len(sample)}, scaled up"
    print(f"{grid}: {len(cells)} cells{said}")
    for name in contenders:
        memory = "" if options.no_memory else f"{ask_memory(name, grid, options):>10} MB"
        print(f"  {name:16}{seconds[name]:10.2f} s{seconds[name] / seconds[OURS]:9.1f} ×{memory}")
    ratio = compare(turns, peer)
    print(f"  {ratio} the fastest peer ({peer}); goal {GOALS[options.size][grid]}×")
    bound, of_peak = report_bound(setting, grid, seconds[OURS], clock)
    note(
        "patching",
        f"{grid} grid, {options.size} size, {options.pairs} pairs",
        ratio=ratio,
        peer=peer,
        seconds=seconds[OURS],
        bound=bound,
        goal=GOALS[options.size][grid],
        of_peak=of_peak,
    )


def report_bound(setting: Setting, grid: str, seconds: float, clock: Clock) -> tuple[float, float]:
    """The largest ratio that the counted products allow, and the fraction of the GEMM peak that ours reaches."""
    count = Count(setting.model.config, setting.contrast)
    needed = count.grid(grid, [torch.from_numpy(column) for column in setting.named.values()])
    n_whole = len(setting.contrast) + sum(  # the source run, and every cell of the pairs that have it
        len(setting.contrast) if grid == "head" else len(setting.positions(grid, other)[0])
        for _, other in setting.cells(grid)
    )
    done = count_done(lambda: run_ours(setting, grid, clock))
    peak = max(time_gemm(size, 9, clock) for size in (512, 1024))
    whole = n_whole * count.whole_runs()
    bound, of_peak = whole / needed, needed / seconds / peak
    print(f"  counted {needed / 1e9:.1f} GFLOP, done {done / 1e9:.1f}, whole runs {whole / 1e9:.1f}: ", end="")
    print(f"bound {bound:.1f}×, {of_peak:.0%} of GEMM peak ({peak / 1e9:.0f} GFLOP/s)\n", flush=True)
    return bound, of_peak


def run_ours(setting: Setting, grid: str, clock: Clock, wanted: np.ndarray | None = None) -> float:
    start = clock()
    if grid == "residual":
        residual_grid(setting.model, setting.contrast, wanted=wanted)
    elif grid == "head":
        head_grid(setting.model, setting.contrast)
    else:
        position_grid(setting.model, setting.contrast, setting.named)
    return clock() - start


def run_peer(setting: Setting, grid: str, peer: Peer, sample: list[tuple[int, int | str]], clock: Clock) -> float:
    """The time of the source run, and that of the sampled cells scaled to all."""
    start = clock()
    peer.take_from(setting.contrast.source)
    taken = clock()
    for layer, position in sample:
        run_cell(setting, grid, peer, layer, position)
    return (taken - start) + (clock() - taken) * len(setting.cells(grid)) / len(sample)


def run_cell(setting: Setting, grid: str, peer: Peer, layer: int, position: int | str) -> Tensor:
    if grid == "head":
        return peer.head(setting.contrast.base, layer, int(position))
    return peer.residual(setting.contrast.base, layer, *setting.positions(grid, position))


def check_agreement(setting: Setting, grid: str, peers: dict[str, Peer], sample: list[tuple[int, int | str]]) -> None:
    """Stop if any sampled cell of a peer differs from ours by more than 1e-5 of the largest logit."""
    ours = {cell: cell_logits(setting, grid, *cell) for cell in sample[:: max(1, len(sample) // 6)]}
    for name, peer in peers.items():
        peer.take_from(setting.contrast.source)
        for cell, logits in ours.items():
            theirs = run_cell(setting, grid, peer, *cell)
            difference = ((theirs - logits).abs().max() / logits.abs().max()).item()
            if difference > 1e-5:
                raise SystemExit(f"{name} computes something else: {grid} {cell} differs by {difference:.2g}.")


def cell_logits(setting: Setting, grid: str, layer: int, position: int | str) -> Tensor:
    """Our logits [pair, output] of one cell."""
    model, contrast = setting.model, setting.contrast
    if grid == "head":
        logits = torch.empty(len(contrast), model.config.outputs)
        for found in patch_heads(model, contrast):
            logits[found.pairs] = found.logits[layer, int(position)]
        return logits
    pairs, positions = setting.positions(grid, position)
    wanted = torch.zeros_like(contrast.base, dtype=torch.bool)
    wanted[pairs, positions] = True
    logits = torch.empty(len(contrast), model.config.outputs)
    for found in residual_columns(model, contrast, wanted=wanted):
        logits[found.pairs] = found.logits[layer]
    return logits[pairs]


def ask_memory(name: str, grid: str, options: argparse.Namespace) -> str:
    """What a new process says that this contender takes at most."""
    command = [sys.executable, __file__, "--size", options.size, "--pairs", str(options.pairs), "--cells", "3"]
    done = subprocess.run([*command, "--memory-of", name, grid], capture_output=True, text=True, check=False)
    return done.stdout.split()[-1] if done.returncode == 0 else "?"


def measure_memory(setting: Setting, directory: Path, name: str, grid: str, n_cells: int) -> int:
    """The megabytes that a grid, or some cells of it, adds to those in use before: Linux's own account.

    The same grid of one pair comes first, for what a library reads in on its first call is no part of a grid.
    """
    peer = None if name == OURS else PEERS[name](directory)

    def compute(setting: Setting, n_cells: int = n_cells) -> None:
        if peer is None:
            wanted = np.zeros(tuple(setting.contrast.base.shape), dtype=bool)
            wanted[:, [10, 30, 60]] = True
            run_ours(setting, grid, time.process_time, wanted)
        else:
            run_peer(setting, grid, peer, setting.cells(grid)[:n_cells], time.process_time)

    compute(with_pairs(setting.model, 1), n_cells=1)
    Path("/proc/self/clear_refs").write_text("5")
    before = read_status("VmRSS")
    compute(setting)
    return round((read_status("VmHWM") - before) / 1024)


def read_status(key: str) -> int:
    """A line of this process's account, in kilobytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1])


if __name__ == "__main__":
    main()
