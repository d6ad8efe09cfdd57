"""How far runs of one seed drift apart when the number of threads or the version of torch differs.

    python benchmarks/determinism.py --threads 1 2 --steps 200
    python benchmarks/determinism.py --threads 1 --keep kept              # with one version of torch, then
    python benchmarks/determinism.py --threads 1 --against kept/0         # with another

Prints, for each number of threads, the largest difference of any weight from the first one's, over training.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

from bindscope.runs.config import override
from bindscope.runs.directory import Run
from bindscope.runs.execute import train_run
from bindscope.studies.framework.presets import find_preset


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--preset", default="binding-tiny")
    asked.add_argument("--threads", type=int, nargs="+", default=[1, 1, 2])
    asked.add_argument("--steps", type=int, default=200)
    asked.add_argument("--keep", type=Path, help="keep the runs in this folder")
    asked.add_argument("--against", type=Path, help="compare with this run too, kept by another version")
    given = asked.parse_args()
    changes = {"training.steps": given.steps, "training.checkpoints.every": max(1, given.steps // 4)}
    config = override(find_preset(given.preset).config, changes)
    print(f"{given.preset}, {given.steps} steps, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            train_run(config, (given.keep or Path(folder)) / str(index), device="cpu", threads=n)
            for index, n in enumerate(given.threads)
        ]
        for n, run in zip(given.threads[1:], runs[1:]):
            print(f"{given.threads[0]} and {n} threads: {describe_differences(runs[0], run)}")
        if given.against:
            other = Run.open(given.against)
            print(f"torch {other.manifest.versions['torch']}: {describe_differences(other, runs[0])}")


def describe_differences(one: Run, other: Run) -> str:
    """The largest difference of a weight at each step that both saved."""
    found = []
    for step in one.steps:
        if one.weights_file(step) == other.weights_file(step):
            found.append(f"step {step} same bytes")
        else:
            first, second = one.weights(step), other.weights(step)
            largest = max(float((first[name] - second[name]).abs().max()) for name in first)
            found.append(f"step {step} {largest:.1e}")
    return ", ".join(found)


if __name__ == "__main__":
    main()
