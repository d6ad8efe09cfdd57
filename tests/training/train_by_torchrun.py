"""Started by test_distributed.py, alone or by torchrun: trains a tiny model and writes what came out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch

from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask
from bindscope.training.config import OptimizerConfig, TrainingConfig
from bindscope.training.distributed import detect_processes, join_processes
from bindscope.training.loop import train
from bindscope.training.state import MemoryKeeper

TASK = BindingTask(lines=3, max_depth=2, queries=2)
CONFIG = TrainingConfig(
    steps=20, batch_size=7, optimizer=OptimizerConfig(lr=1e-2), evaluate_every=4, save_every=20, stop_at=0.5, loss="all"
)


class Stream:
    def batch(self, step: int):
        return TASK.sample_batch(np.random.default_rng(step), CONFIG.batch_size)


def main(directory: Path) -> None:
    torch.set_num_threads(1)
    processes, keeper = detect_processes(), MemoryKeeper()
    shape = ModelConfig(len(TASK.vocabulary), TASK.n_positions, n_layers=2, d_model=16, n_heads=2, d_head=8, d_mlp=32)
    model = Transformer(shape, torch.Generator().manual_seed(processes.rank))  # only the first one's weights count
    model.double()  # Adam makes steps of full size out of rounding errors where a gradient is zero, as key biases' is
    accuracies = iter([0.0, 1.0, 1.0])
    join_processes(processes, torch.device("cpu"))
    train(
        model,
        Stream(),
        CONFIG,
        evaluate=lambda model: {"watched": [next(accuracies)]},
        keeper=keeper,
        processes=processes,
    )
    name = "weights.pt" if processes.is_first else f"weights_of_rank_{processes.rank}.pt"
    torch.save(model.state_dict(), directory / name)
    if processes.is_first:
        steps = [record["step"] for record in keeper.evaluations]
        losses = [record["loss"] for record in keeper.evaluations]
        (directory / "record.json").write_text(json.dumps({"steps": steps, "losses": losses}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
