"""Processes that work at pieces: of this machine with one thread each, or of a Ray cluster's machines.

What they are given, a function of a module and a piece that can be pickled, is the same for both.

>>> with open_workers(jobs=2) as workers:
...     pending = [workers.submit(measure_piece, piece) for piece in pieces]
...     for ended in workers.wait(pending):
...         workers.take(ended)
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Self, TypeVar

from bindscope.errors import BindscopeError
from bindscope.runs.cluster import N_RETRIES, check_machines, connect_cluster

Given = TypeVar("Given")
Found = TypeVar("Found")


def usable_cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_workers(jobs: int = 1, cluster: str | None = None, file: Path | None = None, gpu: bool = False) -> Workers:
    """``jobs`` processes of this machine or, with the address of a ``cluster``, as many as that has processors.

    Its machines must see ``file``; with ``gpu`` each piece asks for one.
    """
    return LocalWorkers(jobs) if cluster is None else ClusterWorkers(cluster, file, gpu)


class Workers(ABC):
    """Processes that are started, or a cluster that is joined, with the first piece; leaving ends what is under way."""

    @property
    @abstractmethod
    def n(self) -> int:
        """How many pieces they work at at once."""

    @abstractmethod
    def submit(self, work: Callable[[Given], Found], piece: Given) -> Future[Found]:
        """Give out a piece."""

    @abstractmethod
    def take(self, ended: Future[Found]) -> Found:
        """What was made of a piece; where the process that had it was lost, a sentence says so."""

    @abstractmethod
    def close(self) -> None:
        """End what is under way."""

    def wait(self, pending: Collection[Future[Found]]) -> set[Future[Found]]:
        """Some pieces that have ended, as soon as there are any."""
        return wait(pending, return_when=FIRST_COMPLETED).done

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LocalWorkers(Workers):
    """Processes of this machine."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        self._stop = multiprocessing.get_context("spawn").Event()

    @property
    def n(self) -> int:
        return self.jobs

    def submit(self, work: Callable[[Given], Found], piece: Given) -> Future[Found]:
        if self._pool is None:
            methods = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.jobs, methods, initializer=_begin, initargs=(self._stop,))
        try:
            return self._pool.submit(work, piece)
        except BrokenProcessPool:
            raise _lost_here() from None

    def take(self, ended: Future[Found]) -> Found:
        try:
            return ended.result()
        except BrokenProcessPool:
            raise _lost_here() from None

    def close(self) -> None:
        self._stop.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


class ClusterWorkers(Workers):
    """Processes of the machines of a Ray cluster, one processor each."""

    def __init__(self, address: str, file: Path | None, gpu: bool = False) -> None:
        self.address, self.file, self.gpu = address, file, gpu
        self._ray: Any = None
        self._tasks: dict[Future[Any], Any] = {}  # Ray's own word for each piece under way

    @property
    def n(self) -> int:
        return max(1, int(self._joined().cluster_resources().get("CPU", 1)))

    def submit(self, work: Callable[[Given], Found], piece: Given) -> Future[Found]:
        settings = {"num_cpus": 1, "num_gpus": int(self.gpu), "max_retries": N_RETRIES}
        task = self._joined().remote(**settings)(work).remote(piece)
        future: Future[Found] = task.future()
        self._tasks[future] = task
        return future

    def take(self, ended: Future[Found]) -> Found:
        self._tasks.pop(ended, None)
        errors = self._joined().exceptions
        try:
            return ended.result()
        except errors.RayTaskError:  # not a loss: the work itself failed
            raise
        except errors.RayError as lost:
            raise BindscopeError(
                f"--cluster {self.address}: a piece was lost {N_RETRIES + 1} times with the process or machine that worked at "
                f"it ({type(lost).__name__}); give the command again to go on."
            ) from None

    def close(self) -> None:
        if self._ray is None:
            return
        for task in self._tasks.values():
            with contextlib.suppress(Exception):  # it may have ended by now
                self._ray.cancel(task, force=True)
        self._ray.shutdown()
        self._ray = None

    def _joined(self) -> Any:
        if self._ray is None:
            ray = connect_cluster(self.address)
            self._ray = ray
            if self.file is not None:
                advice = f"does not see {self.file}; the run must be where all machines share it under one path."
                check_machines(ray, self.address, self.file.resolve(), advice)
        return self._ray


def _lost_here() -> BindscopeError:
    return BindscopeError(
        "a process that worked at a piece was ended from outside, perhaps for want of memory; give the command again to go "
        "on, with --jobs 1."
    )


def _begin(stop: Any) -> None:
    """A process that ends when it is told to, or when the first one does, however that ends; what it trains can be resumed.

    Keys pressed are for the first one. The system closes the pipe behind ``parent.join`` also of a process that was killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    for wait_for_end in (stop.wait, parent.join):
        threading.Thread(target=_end_after, args=(wait_for_end,), name="end", daemon=True).start()


def _end_after(wait_for_end: Callable[[], object]) -> None:
    wait_for_end()
    os._exit(1)
