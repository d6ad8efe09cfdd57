"""``bindscope runs``: what there is to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bindscope.cli.locate import RUNS_DIRECTORY


def list_runs(
    directory: Path = RUNS_DIRECTORY,
    /,
    *,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """List runs with their status, steps and accuracy.

    Shipped runs are listed too: use them by name wherever a command takes RUN.

    Examples:
        bindscope runs
        bindscope runs experiments --json

    Parameters
    ----------
    directory
        The directory that holds runs.
    json
        One JSON object per run.
    """
