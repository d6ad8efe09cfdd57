"""Which examples a training step sees: a pure function of a seed and the step, so a killed run resumes without any
stored data state.

>>> loader = StreamLoader(BindingTask(), seed=0, batch_size=64)
>>> loader.batch(1000)  # the same in every process and after every restart
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, runtime_checkable

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.task import Batch, Dataset, Task


class Loader(Protocol):
    """What training asks for its data."""

    def batch(self, step: int) -> Batch: ...


@runtime_checkable
class StagedTask(Protocol):
    """A task that begins with easier examples: numbered stages, each opened when the one before is learned."""

    @property
    def stages(self) -> Sequence[object]: ...

    @property
    def pass_at(self) -> float:
        """The accuracy on a stage's probe that opens the next stage."""
        ...

    def sample_stage(self, rng: np.random.Generator, n_examples: int, stage: int) -> Batch: ...

    def sample_probe(self, rng: np.random.Generator, n_examples: int, stage: int) -> Batch: ...


class StagedLoader:
    """Fresh examples at every step, of the stage that training has reached, and fresh ones to judge the stage by."""

    def __init__(self, task: StagedTask, seed: int, batch_size: int) -> None:
        _check_loader(seed, batch_size)
        self.task, self.seed, self.batch_size = task, seed, batch_size
        self.stages = tuple(map(str, task.stages))
        self.pass_at = task.pass_at

    def batch(self, step: int, stage: int = 0) -> Batch:
        return self.task.sample_stage(np.random.default_rng([self.seed, step]), self.batch_size, stage)

    def probe(self, step: int, stage: int) -> Batch:
        return self.task.sample_probe(np.random.default_rng([self.seed, step, 1]), self.batch_size, stage)


class StreamLoader:
    """Fresh examples at every step."""

    def __init__(self, task: Task, seed: int, batch_size: int) -> None:
        _check_loader(seed, batch_size)
        self.task, self.seed, self.batch_size = task, seed, batch_size

    def batch(self, step: int) -> Batch:
        return self.task.sample_batch(np.random.default_rng([self.seed, step]), self.batch_size)


class EpochLoader:
    """A fixed dataset, in a new order each epoch. Steps count on over epochs.

    What does not fill a last batch is left out of its epoch; another order leaves out other examples in the next.
    """

    def __init__(self, dataset: Dataset, seed: int, batch_size: int) -> None:
        _check_loader(seed, batch_size)
        if batch_size > len(dataset):
            raise BindscopeError(f"batch_size: {batch_size} is more than the {len(dataset)} examples of the dataset.")
        self.dataset, self.seed, self.batch_size = dataset, seed, batch_size

    @property
    def steps_per_epoch(self) -> int:
        return len(self.dataset) // self.batch_size

    def batch(self, step: int) -> Batch:
        epoch, index = divmod(step, self.steps_per_epoch)
        order = _epoch_order(self.seed, epoch, len(self.dataset))
        return self.dataset.batch(order[index * self.batch_size : (index + 1) * self.batch_size])


@lru_cache(maxsize=2)
def _epoch_order(seed: int, epoch: int, n_examples: int) -> np.ndarray:
    order = np.random.default_rng([seed, epoch]).permutation(n_examples)
    order.setflags(write=False)
    return order


def _check_loader(seed: int, batch_size: int) -> None:
    if seed < 0:
        raise BindscopeError(f"seed: must not be negative, got {seed}.")
    if batch_size < 1:
        raise BindscopeError(f"batch_size: must be at least 1, got {batch_size}.")
