"""Several processes training one model: torchrun starts them, each works on its part of the same global batch.

Every process samples the whole global batch (sampling is cheap and pure in the step), takes rows rank, rank + n, …, and
weights its mean loss by its fraction of the rows. The gradients are averaged, so

    1/n · Σ_rank (n · rows_rank / rows) · ∇mean_rank  =  ∇mean over the global batch

holds for uneven shards too.

When a process is lost, torchrun (``--max-restarts``) ends the others and starts all of them again as the next attempt;
what they train goes on from its last saved state.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from torch.distributed.distributed_c10d import _set_pg_timeout
from torch.distributed.rendezvous import rendezvous

from bindscope.errors import BindscopeError
from bindscope.tasks.task import Batch

T = TypeVar("T")
SECONDS_TO_CONNECT = 180
NO_NAME = "none"  # what torchrun calls itself unless it is given a name or --standalone, which draws one


@dataclass(frozen=True)
class Processes:
    """Which process this is, and how many train together. The default is a process alone."""

    rank: int = 0
    local_rank: int = 0
    n: int = 1
    launch: str = ""  # what torchrun calls this start of it, the same for all its attempts; empty where it has no name
    attempt: int = 0  # how often torchrun has started them again

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

    def average_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Replace each gradient by its mean over processes, all of them in one sum.

        The order in which four numbers are added depends on where in the sum they stand. Here that is always the same
        place, so a run that goes on rounds as one that was never interrupted; DDP moves gradients after its first step.
        """
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if self.n == 1 or not gradients:
            return
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        means = self.mean(flat).split([gradient.numel() for gradient in gradients])
        for gradient, mean in zip(gradients, means):
            gradient.copy_(mean.view_as(gradient))

    def share_weights(self, model: nn.Module) -> None:
        """Let every process begin with the first one's weights."""
        if self.n > 1:
            for tensor in model.state_dict().values():
                dist.broadcast(tensor, src=0)


def detect_processes(environment: Mapping[str, str] = os.environ) -> Processes:
    """Read what torchrun says about this process; alone when it says nothing.

    >>> detect_processes({"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"})
    Processes(rank=1, local_rank=1, n=2, launch='', attempt=0)
    """
    if "RANK" not in environment or "WORLD_SIZE" not in environment:
        return Processes()
    launch = environment.get("TORCHELASTIC_RUN_ID", NO_NAME)
    return Processes(
        int(environment["RANK"]),
        int(environment.get("LOCAL_RANK", environment["RANK"])),
        int(environment["WORLD_SIZE"]),
        "" if launch == NO_NAME else launch,
        int(environment.get("TORCHELASTIC_RESTART_COUNT", 0)),
    )


def join_processes(processes: Processes, device: torch.device, seconds: float = SECONDS_TO_CONNECT) -> None:
    """Connect to the other processes (gloo on CPU, nccl on CUDA), once and until this process ends.

    They have ``seconds`` to find each other and to exchange a first number; afterwards torch's own patience applies,
    which lets the first process evaluate while the others wait.
    """
    if processes.n == 1 or dist.is_initialized():
        return
    if device.type == "mps":
        raise BindscopeError("device: mps trains with one process; start it without torchrun, or with --device cpu.")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        _connect(processes, device, timedelta(seconds=seconds))
    except (RuntimeError, ValueError) as problem:  # torch's errors of networks and stores are RuntimeErrors
        where = f"{os.environ.get('MASTER_ADDR', '?')}:{os.environ.get('MASTER_PORT', '?')}"
        raise BindscopeError(
            f"the {processes.n} processes that torchrun started did not connect within {seconds:g} s by way of {where}; see "
            "that each of them was started, that all machines reach that address, and, where a machine has several "
            f"networks, that GLOO_SOCKET_IFNAME names the one to use ({_first_line(problem)})."
        ) from problem


def _connect(processes: Processes, device: torch.device, patience: timedelta) -> None:
    backend = "nccl" if device.type == "cuda" else "gloo"
    store, _, _ = next(rendezvous("env://", timeout=patience))
    # torchrun keeps one store for all attempts: the addresses of processes that have ended must not be found again
    own = dist.PrefixStore(f"bindscope/attempt {processes.attempt}", store)
    dist.init_process_group(backend, store=own, rank=processes.rank, world_size=processes.n, timeout=patience)
    atexit.register(dist.destroy_process_group)
    processes.mean(torch.zeros(1, device=device)).item()
    usual = default_pg_nccl_timeout if device.type == "cuda" else default_pg_timeout
    _set_pg_timeout(usual or default_pg_timeout)


def _first_line(problem: Exception) -> str:
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")
