"""What fraction of a training step is spent on sampling its batch, for every preset.

    python benchmarks/sampling_fraction.py
    python benchmarks/sampling_fraction.py --presets binding-tiny assign-add --rounds 20

Batch and step alternate in one run; the figure is the ratio of the medians. Processor time is counted, so that a busy
machine does not disturb it, with one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from bindscope.model.lean import shorten
from bindscope.model.transformer import Transformer
from bindscope.runs.config import RunConfig, override
from bindscope.runs.data import prepare_data
from bindscope.studies.framework.presets import PRESETS
from bindscope.training.loss import batch_loss
from bindscope.training.optimizer import build_optimizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="*", default=list(PRESETS), choices=list(PRESETS), metavar="PRESET")
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'preset':28}{'batch, ms':>12}{'step, ms':>12}{'fraction':>9}")
    for name in arguments.presets:
        rounds = min(arguments.rounds, 2) if name == "binding-paper" else arguments.rounds
        batch, step = time_preset(PRESETS[name].config, rounds)
        print(f"{name:28}{1e3 * batch:12.2f}{1e3 * step:12.1f}{batch / step:9.2%}", flush=True)


def time_preset(config: RunConfig, rounds: int) -> tuple[float, float]:
    """Median seconds of sampling one batch, and of one whole step with it."""
    if config.dataset is not None:  # the cost of a batch does not depend on how many examples there are
        config = override(config, {"dataset.train": 10_000, "dataset.validation": 100, "dataset.test": 100})
    loader = prepare_data(config).loader
    model = Transformer(config.model)
    answering = shorten(model)  # as training calls it
    optimizer = build_optimizer(model, config.training.optimizer)

    def train_step(batch) -> None:
        optimizer.zero_grad()
        batch_loss(answering, batch, config.training.loss).backward()
        if config.training.clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.training.clip)
        optimizer.step()

    batches, steps = [], []
    for step in range(rounds + 1):
        seconds, batch = timed(lambda step=step: loader.batch(step))
        rest, _ = timed(lambda batch=batch: train_step(batch))
        batches.append(seconds)
        steps.append(seconds + rest)
    return statistics.median(batches[1:]), statistics.median(steps[1:])


def timed(work: Callable) -> tuple[float, object]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
