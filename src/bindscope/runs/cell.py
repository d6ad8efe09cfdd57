"""One run of a sweep, as a worker process or another machine trains it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bindscope.runs.config import config_from_mapping


def train_cell(mapping: dict[str, Any], directory: str, device: str = "cpu", threads: int = 1) -> str:
    """What a worker process does: train one configuration, from wherever it stands, and name its directory."""
    from bindscope.runs.execute import resume_run, train_run

    config = config_from_mapping(mapping)
    path = Path(directory) / config.name
    if path.exists():
        resume_run(path, threads=threads)
    else:
        train_run(config, path, device=device, threads=threads)
    return str(path)
