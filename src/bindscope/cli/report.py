"""A run's HTML report: its trajectory, and what its checkpoints said to a few examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bindscope.runs.directory import Run
    from bindscope.studies.plots.report import ReportedRun


def write_report(runs: Sequence[Run], path: Path, title: str | None = None) -> Path:
    """Write the report of one or several runs as one HTML file that needs nothing else."""
    from bindscope.runs.files import explain_failure, write_atomically
    from bindscope.studies.plots.report import render_reports

    page = render_reports(title or runs[0].name, [_describe(run) for run in runs])
    with explain_failure(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page.encode())
    return path


def _describe(run: Run) -> ReportedRun:
    from bindscope.families import family_of
    from bindscope.studies.framework.command import find_command
    from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset
    from bindscope.studies.plots.report import ReportedRun

    family = family_of(run.config.task)
    dataset = trajectory_dataset(run.metrics, run.manifest.config, family)
    phases = phases_of(dataset)
    examples = family.show_examples(run, phases) if run.steps else ()
    return ReportedRun(run.name, dataset, run.manifest.config, phases, find_command(run), examples=examples)
