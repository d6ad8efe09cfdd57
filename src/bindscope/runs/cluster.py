"""Work on the machines of a Ray cluster: one run of a sweep, or one piece of a measurement, is one task on one processor.

Every machine must have this version of Bindscope and see the same files under the same path (a shared filesystem); both
are asked of each machine before anything is begun. A task whose machine or process is lost is given to another, which
goes on from what the run last saved; what is lost more often than that goes on when it is asked for again.

>>> for path in train_on_cluster([config_to_mapping(config)], Path("/shared/runs/seeds"), "auto"):
...     print(path)
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import uuid
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from bindscope import __version__
from bindscope.errors import BindscopeError
from bindscope.runs.files import explain_failure

N_RETRIES = 2  # of a task whose process or machine was lost
SECONDS_TO_OPEN = 10  # that the head of a cluster has to accept a connection
SECONDS_TO_ANSWER = 120  # that a machine has to say what it sees


def train_on_cluster(
    configs: Sequence[dict[str, Any]], directory: Path, address: str, device: str = "cpu"
) -> Generator[str, None, None]:
    """Train configurations into ``directory`` and yield the path of each run as it ends.

    ``address`` is that of the cluster's head, or ``auto`` for the one this machine belongs to. Each run asks for one
    processor, and on ``cuda`` for one GPU.
    """
    directory = directory.resolve()
    ray = connect_cluster(address)
    try:
        with _file_in(directory) as token:
            advice = f"does not see {directory}; name a directory with --out that all machines share under one path."
            check_machines(ray, address, token, advice)
        train = ray.remote(num_cpus=1, num_gpus=int(device == "cuda"), max_retries=N_RETRIES)(_train_remotely)
        pending = [train.remote(config, str(directory), device) for config in configs]
        try:
            while pending:
                (ended,), pending = ray.wait(pending, num_returns=1)
                yield _path_of(ray, ended, directory)
        finally:
            for task in pending:
                with contextlib.suppress(Exception):  # it may have ended by now
                    ray.cancel(task, force=True)
    finally:
        ray.shutdown()


def connect_cluster(address: str) -> Any:
    """Ray, connected to the cluster; ``ray.shutdown()`` leaves it."""
    ray = _import_ray()
    if ray.is_initialized():
        raise BindscopeError("--cluster: this process already uses Ray; end that with ray.shutdown() first.")
    try:
        _knock(address)
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", namespace="bindscope")
    except (ConnectionError, ValueError, RuntimeError, OSError):
        raise BindscopeError(
            f"--cluster {address}: no Ray cluster answers there; start one with 'ray start --head' and join machines with "
            "'ray start --address HEAD:6379'."
        ) from None
    return ray


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise BindscopeError(
            "--cluster: Ray is not installed here; install it with pip install 'bindscope[cluster]'."
        ) from None
    return ray


def _knock(address: str) -> None:
    """Ray itself asks a silent address for minutes; a door that does not open raises OSError at once."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_OPEN).close()


def check_machines(ray: Any, address: str, file: Path, advice: str) -> None:
    """Every machine has the same Bindscope and sees a file; of one that does not, ``advice`` says what to do."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise BindscopeError(f"--cluster {address}: none of its machines has a processor to work on.")
    look = ray.remote(num_cpus=0, max_retries=0)(_look_around)
    strategies = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
    asked = [look.options(scheduling_strategy=strategy).remote(str(file)) for strategy in strategies]
    for node, task in zip(nodes, asked):
        _check_machine(ray, node["NodeManagerHostname"], task, advice)


def _check_machine(ray: Any, machine: str, task: Any, advice: str) -> None:
    try:
        sees, version = ray.get(task, timeout=SECONDS_TO_ANSWER)
    except ray.exceptions.GetTimeoutError:
        raise BindscopeError(f"{machine}: did not answer within {SECONDS_TO_ANSWER} s.") from None
    except ray.exceptions.RayError:
        raise BindscopeError(
            f"{machine}: Bindscope cannot be used there; install version {__version__} on it."
        ) from None
    if version != __version__:
        raise BindscopeError(f"{machine}: has Bindscope {version} and this machine {__version__}; install the same.")
    if not sees:
        raise BindscopeError(f"{machine}: {advice}")


@contextlib.contextmanager
def _file_in(directory: Path) -> Iterator[Path]:
    """A file in a directory that is made where it is missing, for the others to see; gone afterwards."""
    with explain_failure(directory):
        directory.mkdir(parents=True, exist_ok=True)
        token = directory / f".seen-by-all-{uuid.uuid4().hex}"
        token.write_text(platform.node())
    try:
        yield token
    finally:
        token.unlink(missing_ok=True)


def _look_around(token: str) -> tuple[bool, str]:
    """What a machine is asked first: whether it sees this file, and its version."""
    return os.path.isfile(token), __version__


def _train_remotely(config: dict[str, Any], directory: str, device: str) -> tuple[str, str]:
    """What a machine does: the path of the run it trained, or the sentence that says why it could not."""
    from bindscope.runs.cell import train_cell

    try:
        return train_cell(config, directory, device), ""
    except BindscopeError as problem:
        return "", str(problem)


def _path_of(ray: Any, task: Any, directory: Path) -> str:
    try:
        path, problem = ray.get(task)
    except ray.exceptions.RayError as lost:
        raise BindscopeError(
            f"{directory}: a run was lost {N_RETRIES + 1} times with the process or machine that trained it "
            f"({type(lost).__name__}); give the command again to go on."
        ) from None
    if problem:
        raise BindscopeError(problem)
    return str(path)
