"""``bindscope runs``: what there is to look at."""

from __future__ import annotations

import json as json_format
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.cli.display import accuracy_of
from bindscope.cli.options import Flag
from bindscope.cli.table import format_table
from bindscope.errors import BindscopeError
from bindscope.runs import locate
from bindscope.runs.locate import RUNS_DIRECTORY

if TYPE_CHECKING:
    from bindscope.runs.directory import Run


def list_runs(
    directory: Path = RUNS_DIRECTORY,
    /,
    *,
    json: Flag = False,
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
    from bindscope.runs.directory import list_runs as find_runs
    from bindscope.runs.lineage import describe_lineage

    if directory != RUNS_DIRECTORY and not directory.is_dir():
        raise BindscopeError(
            f"{directory}: no such directory; name one that holds runs, or none for ./runs and the shipped ones."
        )
    own, problems = find_runs(directory)
    shipped, _ = find_runs(locate.SHIPPED_DIRECTORY)
    rows, notes = [], []
    for run in (*own, *shipped):
        try:
            rows.append(describe_run(run, shipped=run in shipped))
            notes += [f"{run.path}: {sentence}" for sentence in describe_lineage(run.manifest.data)]
        except BindscopeError as problem:
            problems.append(str(problem))
    for sentence in problems:
        print(f"bindscope: {sentence}", file=sys.stderr)
    if json and rows:
        print("\n".join(map(json_format.dumps, rows)))
    elif rows:
        cells = [[_format_cell(value) for value in row.values()] for row in rows]
        print(format_table(list(rows[0]), cells, numbers=[2, 3, 4, 5, 6]))
        for sentence in notes:
            print(sentence)
    elif not json and not problems:
        print(f"No runs in {directory}. Train one with 'bindscope train binding-tiny'.")


def describe_run(run: Run, shipped: bool) -> dict[str, Any]:
    """One row of the list."""
    metrics = run.metrics
    accuracy = accuracy_of(metrics[-1]) if metrics else math.nan
    return {
        "run": run.name if shipped else str(run.path),
        "status": "shipped" if shipped else run.status,
        "step": metrics[-1]["step"] if metrics else (run.steps[-1] if run.steps else 0),
        "of": run.manifest.total_steps,
        "checkpoints": len(run.steps),
        "accuracy": None if math.isnan(accuracy) else round(accuracy, 4),
        "parameters": run.config.model.n_parameters,
        "family": run.config.task.family,
    }


def _format_cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
