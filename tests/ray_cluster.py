"""A real Ray cluster on this machine, for tests; they are skipped where Ray is not installed."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 240  # seconds for what must come about, on however busy a machine


@dataclass(frozen=True)
class Nodes:
    """Two nodes with one processor each, of which the second can be lost and has a GPU in name."""

    address: str
    client: str  # the address that begins with ray://
    cluster: Any
    second: Any

    def lose_second(self, when: Callable[[], bool] = lambda: True, then: Callable[[], None] = lambda: None) -> None:
        """End the second node at once, with its processes, as soon as these work and ``when`` holds; ``then`` look, before the
        cluster hears of it and others go on."""
        wait_until(lambda: bool(self.workers_of_second()) and when())
        for process in (self._raylet_of_second, *self.workers_of_second()):
            os.kill(process, signal.SIGKILL)
        then()
        self.cluster.remove_node(self.second, allow_graceful=False)

    def workers_of_second(self) -> list[int]:
        return [process for process in _processes() if _parent_of(process) == self._raylet_of_second]

    @property
    def _raylet_of_second(self) -> int:
        return int(self.second.all_processes["raylet"][0].process.pid)


@contextmanager
def start_nodes() -> Iterator[Nodes]:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)  # workers import what we do
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    head = {"num_cpus": 1, "include_dashboard": False, "ray_client_server_port": port}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        second = cluster.add_node(num_cpus=1, num_gpus=1)
        yield Nodes(cluster.address, f"ray://127.0.0.1:{port}", cluster, second)
    finally:
        cluster.shutdown()
        os.environ["PYTHONPATH"] = path or ""


@contextmanager
def start_cluster() -> Iterator[str]:
    """The address of a cluster of two nodes with one processor each."""
    with start_nodes() as nodes:
        yield nodes.address


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "what the test waits for did not come about"
        time.sleep(0.05)


def process_that_locks(directory: Path) -> int | None:
    """Who holds a run's lock open, by the system's own list."""
    lock = str(directory / ".lock")
    for process in _processes():
        try:
            if any(os.readlink(handle) == lock for handle in Path(f"/proc/{process}/fd").iterdir()):
                return process
        except OSError:
            continue
    return None


def _processes() -> list[int]:
    names = (path.name for path in Path("/proc").iterdir())
    return [int(name) for name in names if name.isdigit() and int(name) != os.getpid()]


def _parent_of(process: int) -> int | None:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
