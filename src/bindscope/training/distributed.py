"""Several processes training one model: torchrun starts them, each works on its part of the same global batch.

Every process samples the whole global batch (sampling is cheap and pure in the step), takes rows rank, rank + n, …, and
weights its mean loss by its fraction of the rows. DDP averages the gradients, so

    1/n · Σ_rank (n · rows_rank / rows) · ∇mean_rank  =  ∇mean over the global batch

holds for uneven shards too.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist

from bindscope.errors import BindscopeError
from bindscope.tasks.task import Batch

T = TypeVar("T")


@dataclass(frozen=True)
class Processes:
    """Which process this is, and how many train together. The default is a process alone."""

    rank: int = 0
    local_rank: int = 0
    n: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share(self, make: Callable[[], T]) -> T:
        """What ``make`` returns on the first process, on all of them; a BindscopeError there is raised everywhere."""
        if self.n == 1:
            return make()
        box: list[tuple[T | None, str | None]] = [(None, None)]
        if self.is_first:
            try:
                box[0] = (make(), None)
            except BindscopeError as error:
                box[0] = (None, str(error))
        dist.broadcast_object_list(box, src=0)
        value, problem = box[0]
        if problem is not None:
            raise BindscopeError(problem)
        return value  # type: ignore[return-value]

    def shard(self, batch: Batch) -> tuple[Batch, float]:
        """This process's rows and what its mean loss is multiplied by before the gradients are averaged."""
        if self.n == 1:
            return batch, 1.0
        part = batch.shard(self.rank, self.n)
        if len(part) == 0:  # fewer rows than processes: take part in the averaging with a row that counts nothing
            return batch.take(slice(0, 1)), 0.0
        return part, len(part) * self.n / len(batch)

    def mean(self, value: Tensor) -> Tensor:
        """The mean over processes."""
        if self.n == 1:
            return value
        total = value.clone()
        dist.all_reduce(total)
        return total / self.n

    def averaging(self, replica: nn.Module, now: bool) -> AbstractContextManager[None]:
        """Where gradients of a replica are made: averaged over processes ``now``, or only added up until then."""
        return nullcontext() if self.n == 1 or now else replica.no_sync()  # type: ignore[operator, return-value]

    def replicate(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The model as training calls it: itself, or wrapped so that gradients are averaged over processes."""
        if self.n == 1:
            return model
        device_ids = [device.index] if device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(model, device_ids=device_ids, gradient_as_bucket_view=True)


def detect_processes(environment: Mapping[str, str] = os.environ) -> Processes:
    """Read what torchrun says about this process; alone when it says nothing.

    >>> detect_processes({"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"})
    Processes(rank=1, local_rank=1, n=2)
    """
    if "RANK" not in environment or "WORLD_SIZE" not in environment:
        return Processes()
    return Processes(
        int(environment["RANK"]),
        int(environment.get("LOCAL_RANK", environment["RANK"])),
        int(environment["WORLD_SIZE"]),
    )


def join_processes(processes: Processes, device: torch.device) -> None:
    """Connect to the other processes (gloo on CPU, nccl on CUDA), once and until this process ends."""
    if processes.n == 1 or dist.is_initialized():
        return
    if device.type == "mps":
        raise BindscopeError("device: mps trains with one process; start it without torchrun, or with --device cpu.")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    atexit.register(dist.destroy_process_group)
