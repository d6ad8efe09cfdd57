from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask


@pytest.fixture
def task() -> BindingTask:
    return BindingTask(lines=3, max_depth=2, queries=3)


@pytest.fixture
def make_model(task):
    """A fresh tiny transformer for the task; the same weights each time unless a seed is given."""

    def make(seed: int = 0, **changes) -> Transformer:
        shape = {"n_layers": 2, "n_heads": 2, "d_model": 16, "d_head": 8, "d_mlp": 32} | changes
        config = ModelConfig(len(task.vocabulary), task.n_positions, **shape)
        return Transformer(config, torch.Generator().manual_seed(seed))

    return make


class Stream:
    """Batches by step, pure in (seed, step)."""

    def __init__(self, task: BindingTask, batch_size: int = 8, seed: int = 0) -> None:
        self.task, self.batch_size, self.seed = task, batch_size, seed

    def batch(self, step: int):
        return self.task.sample_batch(np.random.default_rng([self.seed, step]), self.batch_size)


@pytest.fixture
def stream(task) -> Stream:
    return Stream(task)
