"""Which directory a person means by RUN, for commands: ``bindscope.runs.locate`` under its old address."""

from bindscope.runs.locate import (
    MANIFEST,
    RUNS_DIRECTORY,
    SHIPPED_DIRECTORY,
    find_run,
    is_shipped,
    runs_in,
    shipped_runs,
)

__all__ = ["MANIFEST", "RUNS_DIRECTORY", "SHIPPED_DIRECTORY", "find_run", "is_shipped", "runs_in", "shipped_runs"]
