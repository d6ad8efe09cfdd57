"""The sums on which parts of a model are tried: those of the nine splits, and more beside them."""

from __future__ import annotations

import numpy as np

from bindscope.measures.transplanting import Asked
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.task import Batch


def ask_splits(task: AssignAddTask, rng: np.random.Generator, n: int) -> Asked:
    """The nine splits, ``n`` sums each."""
    drawn = task.sample_evaluation(rng, n)
    tokens = np.concatenate([batch.tokens for batch in drawn.values()])
    splits = {name: slice(index * n, (index + 1) * n) for index, name in enumerate(drawn)}
    return Asked(task.to_batch(tokens), splits)


def with_split(asked: Asked, name: str, batch: Batch, task: AssignAddTask) -> Asked:
    """The same with one more split behind the others."""
    tokens = np.concatenate([asked.batch.tokens, batch.tokens])
    return Asked(task.to_batch(tokens), {**asked.splits, name: slice(len(asked.batch), len(tokens))})
