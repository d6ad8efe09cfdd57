"""Many runs, one after another, side by side or on a cluster.

Each is a directory of its own, so a sweep stops and goes on run by run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bindscope.errors import BindscopeError
from bindscope.runs.cell import train_cell
from bindscope.runs.cluster import ONE_PROCESSOR, PerRun, train_on_cluster
from bindscope.runs.config import RunConfig, config_to_mapping
from bindscope.runs.directory import Run
from bindscope.runs.placement import Device, Placement
from bindscope.runs.workers import open_workers

ENDED = ("finished", "stopped early")  # what the status of a run with nothing left to train is


def train_sweep(
    configs: Sequence[RunConfig],
    directory: Path | str,
    jobs: int = 1,
    cluster: str | None = None,
    device: Device = "cpu",
    per_run: PerRun = ONE_PROCESSOR,
) -> Iterator[Run]:
    """Train every configuration into ``directory``/its name, ``jobs`` at a time with one thread each.

    Yields each run as it ends. Runs that have ended before are yielded at once, interrupted ones go on. With the address
    of a Ray ``cluster`` (or ``auto``) its machines train them, as many at once as they have room for, each with what
    ``per_run`` asks; one that cannot be trained is told of when the others have ended. ``device`` is where new ones are
    trained; without a cluster, one that this machine lacks is refused before any is begun.

    >>> for run in train_sweep([override(config, {"name": f"seed-{s}", "seed": s}) for s in range(3)], "runs/seeds", 2):
    ...     print(run.name, run.metrics[-1]["test"]["accuracy"])
    """
    directory = Path(directory)
    names = [config.name for config in configs]
    if len(set(names)) < len(names):
        raise BindscopeError("sweep: two of its runs have the same name; give each its own.")
    pending = []
    for config in configs:
        run = existing_run(directory / config.name, config)
        if run is not None and run.status in ENDED:
            yield run
        else:
            pending.append(config)
    if not pending:
        return
    mappings = [config_to_mapping(config) for config in pending]
    if cluster is None:
        ended = _train_in_processes(mappings, directory, jobs, Placement(device).check().device)
    else:
        ended = train_on_cluster(mappings, directory, cluster, device, per_run)
    with contextlib.closing(ended):
        for path in ended:
            yield Run.open(path)


def existing_run(path: Path, config: RunConfig) -> Run | None:
    """The run at ``path``, if there is one; a run of other settings there is an error."""
    if not path.exists():
        return None
    run = Run.open(path)
    if run.config != config:
        raise BindscopeError(f"{path}: holds a run with other settings; name another directory for this sweep.")
    return run


def _train_in_processes(
    mappings: Sequence[dict[str, Any]], directory: Path, jobs: int, device: str
) -> Generator[str, None, None]:
    """Processes of this machine train; yields the path of each run as it ends."""
    with open_workers(min(jobs, len(mappings))) as workers:
        train = partial(train_cell, directory=str(directory), device=device)
        pending = {workers.submit(train, mapping) for mapping in mappings}
        while pending:
            ended = workers.wait(pending)
            pending -= ended
            yield from map(workers.take, ended)
