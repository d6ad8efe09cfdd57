"""Work on the machines of a Ray cluster: one run of a sweep, or one piece of a measurement, is one task.

Every machine must have this version of Bindscope and see the same files under the same path (a shared filesystem); both
are asked of each machine before anything is begun. A task whose machine or process is lost is given to another, which
goes on from what the run last saved. A run that cannot be trained, or is lost more often than that, does not keep the
others from ending; it goes on when it is asked for again.

>>> for path in train_on_cluster([config_to_mapping(config)], Path("/shared/runs/seeds"), "auto"):
...     print(path)
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import time
import uuid
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bindscope import __version__
from bindscope.errors import BindscopeError
from bindscope.runs.files import explain_failure
from bindscope.runs.lock import is_locked

N_RETRIES = 2  # of a task whose process or machine was lost
N_TOLD = 3  # of the runs that did not end, how many are told of
SECONDS_TO_LET_GO = 60  # that a process has to notice that its machine was given up
SECONDS_TO_OPEN = 10  # that the head of a cluster has to accept a connection
SECONDS_TO_ANSWER = 120  # that a machine has to say what it sees


@dataclass(frozen=True)
class PerRun:
    """What each run of a sweep asks of a cluster."""

    cpus: int = 1  # processors, and threads
    gpus: float | None = None  # a fraction shares one; None: one on cuda, and none elsewhere
    retries: int = N_RETRIES  # how often it is given to another machine when its own, or its process, is lost

    def __post_init__(self) -> None:
        if self.cpus < 1:
            raise BindscopeError(f"--cpus-per-run: must be at least 1, got {self.cpus}.")
        if self.gpus is not None and (self.gpus < 0 or (self.gpus > 1 and self.gpus != int(self.gpus))):
            raise BindscopeError(f"--gpus-per-run: a fraction of one, or whole ones, got {self.gpus:g}.")
        if self.retries < 0:
            raise BindscopeError(f"--retries: must not be negative, got {self.retries}.")

    def gpus_on(self, device: str) -> float:
        return float(device == "cuda") if self.gpus is None else self.gpus


ONE_PROCESSOR = PerRun()


def train_on_cluster(
    configs: Sequence[dict[str, Any]],
    directory: Path,
    address: str,
    device: str = "cpu",
    per_run: PerRun = ONE_PROCESSOR,
) -> Generator[str, None, None]:
    """Train configurations into ``directory`` and yield the path of each run as it ends; then say which did not.

    ``address`` is that of the cluster's head, or ``auto`` for the one this machine belongs to.
    """
    directory = directory.resolve()
    ray = connect_cluster(address)
    try:
        _check_fits(ray, address, per_run, device)
        with _file_in(directory) as token:
            advice = f"does not see {directory}; name a directory with --out that all machines share under one path."
            check_machines(ray, address, token, advice)
        asks = {"num_cpus": per_run.cpus, "num_gpus": per_run.gpus_on(device), "max_retries": per_run.retries}
        train = ray.remote(**asks)(_train_remotely)
        pending = {train.remote(config, str(directory), device, per_run.cpus): config["name"] for config in configs}
        try:
            yield from _collect(ray, pending, directory, per_run.retries)
        finally:
            for task in pending:
                with contextlib.suppress(Exception):  # it may have ended by now
                    ray.cancel(task, force=True)
    finally:
        ray.shutdown()


def _collect(ray: Any, pending: dict[Any, str], directory: Path, retries: int) -> Iterator[str]:
    """The path of each run that ends; when all have been waited for, an error says which did not."""
    n_runs, problems = len(pending), []
    while pending:
        (ended,), _ = ray.wait(list(pending), num_returns=1)
        name = pending.pop(ended)
        try:
            path, problem = ray.get(ended)
        except ray.exceptions.RayError as lost:
            path, problem = (
                "",
                (
                    f"{directory / name}: the run was lost {retries + 1} times with the process or machine that trained it "
                    f"({type(lost).__name__})."
                ),
            )
        if problem:
            problems.append(problem)
        else:
            yield str(path)
    if problems:
        raise BindscopeError(_tell_problems(problems, n_runs))


def _tell_problems(problems: Sequence[str], n_runs: int) -> str:
    told = " ".join(problems[:N_TOLD])
    if n_runs == 1:
        return told
    more = f" And {len(problems) - N_TOLD} more." if len(problems) > N_TOLD else ""
    return f"{len(problems)} of {n_runs} runs did not end; give the command again to go on with them. {told}{more}"


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


def _check_fits(ray: Any, address: str, per_run: PerRun, device: str) -> None:
    """Ray would wait for ever for a machine that is large enough."""
    gpus = per_run.gpus_on(device)
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(each.get("CPU", 0) >= per_run.cpus and each.get("GPU", 0) >= gpus for each in machines):
        raise BindscopeError(
            f"--cluster {address}: none of its machines has {per_run.cpus} processors and {gpus:g} GPUs for a run; ask for "
            "less with --cpus-per-run and --gpus-per-run."
        )


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


def _train_remotely(config: dict[str, Any], directory: str, device: str, threads: int) -> tuple[str, str]:
    """What a machine does: the path of the run it trained, or the sentence that says why it could not."""
    from bindscope.runs.cell import train_cell

    _wait_until_free(Path(directory) / config["name"])
    try:
        return train_cell(config, directory, device, threads), ""
    except BindscopeError as problem:
        return "", str(problem)


def _wait_until_free(path: Path) -> None:
    """A process whose machine was given up trains on until it notices; then the run can be gone on with."""
    deadline = time.monotonic() + SECONDS_TO_LET_GO
    while is_locked(path) and time.monotonic() < deadline:
        time.sleep(0.2)
