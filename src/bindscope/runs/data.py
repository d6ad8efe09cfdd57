"""The batches a run is trained on, with a fingerprint that a resumed run is held to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bindscope.errors import BindscopeError
from bindscope.runs.config import DatasetConfig, RunConfig
from bindscope.tasks.loading import EpochLoader, Loader, StagedLoader, StagedTask, StreamLoader
from bindscope.tasks.task import Batch, Task, hash_batch

__all__ = ["TrainingData", "hash_batch", "prepare_data"]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Batches by step, what they are recognised by, and splits to evaluate on that belong to the same dataset."""

    loader: Loader
    fingerprint: dict[str, Any]  # {"kind": "stream" | "fixed" | "text", "sha256": …}
    splits: Mapping[str, Batch] = field(default_factory=dict)  # instead of the task's own of the same name

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
    task, seed, batch_size = config.task, config.seeds["data"], config.training.batch_size
    if config.n_examples is None:
        loader = _stream(task, seed, batch_size)
        return TrainingData(
            loader, task.recognise_stream() or {"kind": "stream", "sha256": hash_batch(loader.batch(0))}
        )
    fixed = task.draw_fixed(seed, asdict(config.dataset or DatasetConfig()), config.training.evaluation_size)
    fingerprint = {"kind": "fixed", "sha256": fixed.sha256}
    return TrainingData(EpochLoader(fixed.dataset, seed, batch_size), fingerprint, fixed.splits)


def _stream(task: Task, seed: int, batch_size: int) -> StreamLoader | StagedLoader:
    if isinstance(task, StagedTask) and task.stages:
        return StagedLoader(task, seed, batch_size)
    return StreamLoader(task, seed, batch_size)
