"""The batches a run is trained on, with a fingerprint that a resumed run is held to."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.runs.config import RunConfig
from bindscope.tasks.loading import StreamLoader
from bindscope.tasks.task import Batch
from bindscope.training.loop import Loader


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Batches by step and what they are recognised by."""

    loader: Loader
    fingerprint: dict[str, Any]  # {"kind": "stream" | "fixed", "sha256": …}

    def check_unchanged(self, recorded: Any) -> None:
        """A run may only go on with the data it began with."""
        if dict(recorded) != self.fingerprint:
            raise BindscopeError(
                "the training data drawn now is not what this run began with, so another version of Bindscope or numpy "
                "made it; resume with the versions its manifest names."
            )


def prepare_data(config: RunConfig) -> TrainingData:
    """An endless stream, or a fixed dataset seen in epochs. A stream is recognised by its first batch."""
    loader = StreamLoader(config.task, config.seeds["data"], config.training.batch_size)
    return TrainingData(loader, {"kind": "stream", "sha256": hash_batch(loader.batch(0))})


def hash_batch(batch: Batch) -> str:
    """The SHA-256 of what a batch holds."""
    digest = hashlib.sha256()
    for array in (batch.tokens, batch.layout.position_ids, batch.target_positions, batch.targets):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
