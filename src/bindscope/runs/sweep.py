"""Many runs, one after another or side by side: each is a directory of its own, so a sweep stops and goes on run by run."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from bindscope.errors import BindscopeError
from bindscope.runs.config import RunConfig, config_from_mapping, config_to_mapping
from bindscope.runs.directory import Run

ENDED = ("finished", "stopped early")  # what the status of a run with nothing left to train is


def train_sweep(configs: Sequence[RunConfig], directory: Path | str, jobs: int = 1) -> Iterator[Run]:
    """Train every configuration into ``directory``/its name, ``jobs`` at a time with one thread each.

    Yields each run as it ends. Runs that have ended before are yielded at once, interrupted ones go on.

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
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=min(jobs, len(pending)), mp_context=context) as pool:
        futures = [pool.submit(_train_cell, config_to_mapping(config), str(directory)) for config in pending]
        try:
            for future in as_completed(futures):
                yield Run.open(future.result())
        except BrokenProcessPool:
            raise BindscopeError(
                f"{directory}: a process that trained one of these runs was ended from outside, perhaps for want of "
                "memory; give the command again to go on, with fewer jobs."
            ) from None
        finally:
            for future in futures:
                future.cancel()


def existing_run(path: Path, config: RunConfig) -> Run | None:
    """The run at ``path``, if there is one; a run of other settings there is an error."""
    if not path.exists():
        return None
    run = Run.open(path)
    if run.config != config:
        raise BindscopeError(f"{path}: holds a run with other settings; name another directory for this sweep.")
    return run


def _train_cell(mapping: dict, directory: str) -> str:
    """What a worker process does: train one configuration, from wherever it stands."""
    from bindscope.runs.execute import resume_run, train_run

    config = config_from_mapping(mapping)
    path = Path(directory) / config.name
    if path.exists():
        resume_run(path, threads=1)
    else:
        train_run(config, path, device="cpu", threads=1)
    return str(path)
