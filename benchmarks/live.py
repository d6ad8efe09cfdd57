"""How long a reader waits for a whole residual grid of one program, over real HTTP, question to last byte.

    python benchmarks/live.py --size laptop --rounds 21
    python benchmarks/live.py --size paper --rounds 5

A server of its own process answers; each round asks about another pair of 16-line programs, so that nothing is answered
from memory. *laptop* is the shipped run binding-laptop at its last step, *paper* a model of 12 layers, 8 heads of 64 and
width 512 with random weights. Printed are medians: until the body with the labels, the first cells and the last byte,
the cells at the positions of the chain, how many parts came, and the largest fraction of the whole wait that passed without
one. The server computes a small model with one thread and a large one with all cores, one worker each, unless ``--threads``
(in each product) and ``--workers`` (each at a part of its own) say otherwise. Its processor time says what a machine would need
that nobody else uses.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from bindscope.model.config import ModelConfig
from bindscope.runs.config import RunConfig, config_to_mapping
from bindscope.runs.directory import Run
from bindscope.runs.locate import find_run
from bindscope.runs.manifest import Manifest, describe_origin
from bindscope.tasks.binding import BindingTask, sample_root_pairs
from bindscope.tasks.binding.program import Program
from turns import note

PAPER = dict(n_layers=12, d_model=512, n_heads=8, d_head=64, d_mlp=2048, bias=False)
GOALS = {"laptop": 0.3, "paper": 4.2}  # seconds


@dataclass(frozen=True)
class Wait:
    """One answer: seconds until each of its lines came, until the last cell of the chain did, and its bytes."""

    lines: list[float]
    chain: float
    n_bytes: int

    @property
    def longest_gap(self) -> float:
        """The largest fraction of the wait that passed without a new line."""
        return max(np.diff([0.0, *self.lines])) / self.lines[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(GOALS), default="laptop")
    parser.add_argument("--grid", choices=["residual", "heads", "mlps"], default="residual")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, default=0, help="as the server chooses when left out")
    parser.add_argument("--workers", type=int, default=0, help="as the server chooses when left out")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = find_run("binding-laptop") if arguments.size == "laptop" else make_paper_run(Path(folder) / "paper")
        run, port = Run.open(path), free_port()
        chosen = (arguments.threads, arguments.workers)
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(path, port, *chosen))
        server.start()
        try:
            wait_for(port)
            questions = list(draw_questions(run, arguments.grid, arguments.rounds + 1, arguments.seed))
            ask(port, *questions[0])  # loads the model
            before = processor_time(server.pid)
            waits = [ask(port, *question) for question in questions[1:]]
            busy = (processor_time(server.pid) - before) / len(waits)
        finally:
            server.terminate()
            server.join()
    report(arguments.size, arguments.grid, chosen, waits, busy)


def report(size: str, grid: str, chosen: tuple[int, int], waits: list[Wait], busy: float) -> None:
    """Medians over the rounds."""
    body, first, last = (median(wait.lines[index] for wait in waits) for index in (0, 1, -1))
    slowest = max(wait.lines[-1] for wait in waits)
    parts = median(len(wait.lines) - 1 for wait in waits)
    gap, n_bytes = median(wait.longest_gap for wait in waits), median(wait.n_bytes for wait in waits)
    chain = median(wait.chain for wait in waits)
    threads, workers = (number or "usual" for number in chosen)
    print(f"{size}, {grid}, {threads} threads, {workers} workers, median of {len(waits)}:")
    print(f"  labels after {1000 * body:.0f} ms, first cells {1000 * first:.0f} ms, whole grid {1000 * last:.0f} ms")
    if grid == "residual":
        print(f"  all cells at the positions of the chain after {1000 * chain:.0f} ms")
    print(
        f"  slowest {1000 * slowest:.0f} ms; {parts:.0f} parts, longest gap {gap:.0%} of the wait, {n_bytes:.0f} bytes"
    )
    print(f"  the server was busy for {1000 * busy:.0f} ms of processor time a grid")
    remark = (
        f"first cells after {first:.2f} s, the chain's after {chain:.2f} s, slowest {slowest:.2f} s, n = {len(waits)}"
    )
    note("live", f"live {grid} grid, {size} size", seconds=last, goal=GOALS[size], remark=remark)
    if grid == "residual":
        print(f"  goal {1000 * GOALS[size]:.0f} ms: {'met' if last < GOALS[size] else 'missed'}")


def ask(port: int, question: dict[str, object], chain: set[int]) -> Wait:
    """Ask, and note when each line arrives, and when the last position of the chain does."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    content = json.dumps(question).encode()
    start = time.perf_counter()
    connection.request("POST", "/api/live/grid", content, {"Content-Type": "application/json"})
    response = connection.getresponse()
    lines, received = [], []
    while line := response.readline():
        lines.append(time.perf_counter() - start)
        received.append(line)
    connection.close()
    if response.status != 200:
        raise SystemExit(f"the server answered {response.status}: {b''.join(received)!r}")
    holding = [at for at, line in zip(lines, received) if chain & set(positions_of(line, received[0]))]
    return Wait(lines, max(holding, default=0.0), sum(map(len, received)))


def positions_of(line: bytes, body: bytes) -> range:
    """The positions whose cells a line of a residual grid holds."""
    n_layers, part = json.loads(body)["sizes"].get("layer", 1), json.loads(line)
    if "at" not in part:
        return range(0)
    return range(part["at"] // n_layers, (part["at"] + len(part["variables"]["kl"])) // n_layers)


def draw_questions(run: Run, grid: str, n: int, seed: int) -> Iterator[tuple[dict[str, object], set[int]]]:
    """Questions, each with the positions of its chain."""
    task = run.config.task
    assert isinstance(task, BindingTask)
    pairs = sample_root_pairs(task, np.random.default_rng(seed), n, first_root_line=3)
    for base, other, chain in zip(pairs.base_tokens, pairs.counterfactual_tokens, pairs.chain_positions):
        program, counterfactual = (Program.from_tokens(row).text for row in (base, other))
        question = {
            "run": run.name, "step": run.steps[-1], "grid": grid, "program": program, "counterfactual": counterfactual,
        }  # fmt: skip
        yield question, {*chain[chain >= 0].tolist(), pairs.query_position, pairs.colon_position}


def make_paper_run(path: Path) -> Path:
    """A run whose only checkpoint is a paper-size model as it is drawn."""
    from bindscope.model.transformer import Transformer

    task = BindingTask(lines=16)
    config = RunConfig("paper", task, ModelConfig(task.d_out, task.n_positions, **PAPER))  # type: ignore[arg-type]
    origin = describe_origin("cpu", n_threads=0, n_processes=0)
    run = Run.create(path, Manifest("paper", config_to_mapping(config), seeds={}, total_steps=0, **origin))
    run.write_checkpoint(0, Transformer(config.model).state_dict())
    return path


def serve(path: Path, port: int, threads: int, workers: int) -> None:
    import torch
    import uvicorn

    from bindscope.web.app import create_app
    from bindscope.web.lab import Lab
    from bindscope.web.pages import patch

    if threads:
        patch.use_threads = lambda n_threads: torch.set_num_threads(threads)
    if workers:
        patch.count_cores = lambda run: workers
    uvicorn.run(create_app(Lab.open([path], read_only=[path])), port=port, log_level="warning")


def processor_time(process: int | None) -> float:
    """Seconds that a process has computed so far; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start.")


if __name__ == "__main__":
    main()
