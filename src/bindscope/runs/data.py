"""The batches a run is trained on, with a fingerprint that a resumed run is held to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.runs.config import AnyTask, RunConfig
from bindscope.tasks.binding import BindingDataset, BindingTask, make_splits
from bindscope.tasks.loading import EpochLoader, Loader, StagedLoader, StagedTask, StreamLoader
from bindscope.tasks.task import Batch
from bindscope.tasks.templates import TemplateTask
from bindscope.tasks.text import TextTask


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Batches by step, what they are recognised by, and pools to evaluate on that belong to the same dataset."""

    loader: Loader
    fingerprint: dict[str, Any]  # {"kind": "stream" | "fixed" | "text", "sha256": …}
    pools: Mapping[str, Batch] = field(default_factory=dict)  # instead of the task's own of the same name

    def check_unchanged(self, recorded: Mapping[str, Any]) -> None:
        """A run may only go on with the data it began with."""
        if all(recorded.get(key) == self.fingerprint[key] for key in ("kind", "sha256")):
            return
        if self.fingerprint["kind"] == "text":
            raise BindscopeError(
                "the text or its tokenizer is not what this run began with (task.source, task.tokenizer); put the "
                "files back as they were, or train a new run."
            )
        raise BindscopeError(
            "the training data drawn now is not what this run began with, so another version of Bindscope or numpy "
            "made it; resume with the versions its manifest names."
        )


def prepare_data(config: RunConfig) -> TrainingData:
    """An endless stream, which is recognised by its first batch, or a fixed dataset seen in epochs.

    >>> prepare_data(config).loader.batch(0)
    """
    seed, batch_size = config.seeds["data"], config.training.batch_size
    if config.n_examples is None:
        loader = _stream(config.task, seed, batch_size)
        if isinstance(config.task, TextTask):
            corpus = config.task.corpus
            return TrainingData(loader, {"kind": "text", "sha256": corpus.sha256, "source": corpus.description})
        return TrainingData(loader, {"kind": "stream", "sha256": hash_batch(loader.batch(0))})
    if isinstance(config.task, BindingTask) and config.dataset is not None:
        splits = make_splits(config.task, seed, asdict(config.dataset), config.task.queries)
        fingerprint = {"kind": "fixed", "sha256": splits["train"].content_hash}
        pools = _test_pool(config.task, splits["test"], config.training.evaluation_size)
        return TrainingData(EpochLoader(splits["train"], seed, batch_size), fingerprint, pools)
    if isinstance(config.task, TemplateTask):
        examples = config.task.training_set()
    else:
        examples = config.task.sample_batch(np.random.default_rng(seed), config.n_examples)
    fingerprint = {"kind": "fixed", "sha256": hash_batch(examples)}
    return TrainingData(EpochLoader(SampledDataset(examples), seed, batch_size), fingerprint)


def _stream(task: AnyTask, seed: int, batch_size: int) -> StreamLoader | StagedLoader:
    if isinstance(task, StagedTask) and task.stages:
        return StagedLoader(task, seed, batch_size)
    return StreamLoader(task, seed, batch_size)


def _test_pool(task: BindingTask, split: BindingDataset, size: int) -> dict[str, Batch]:
    """The first programs of the test split with their first query, as every pool asks one question an example."""
    one_query = split.tokens[:size, : task.n_positions]
    return {"test": BindingDataset(one_query).batch(slice(None))} if len(one_query) else {}


@dataclass(frozen=True, eq=False)
class SampledDataset:
    """One large batch as a fixed dataset, for tasks whose evaluation is disjoint from training by its symbols."""

    examples: Batch

    def __len__(self) -> int:
        return len(self.examples)

    def batch(self, indices: np.ndarray) -> Batch:
        return self.examples.take(indices)


def hash_batch(batch: Batch) -> str:
    """The SHA-256 of what a batch holds."""
    digest = hashlib.sha256()
    for array in (batch.tokens, batch.layout.position_ids, batch.target_positions, batch.targets):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
