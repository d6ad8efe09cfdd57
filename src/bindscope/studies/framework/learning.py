"""The result that every study of runs begins with: what a run's evaluations recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bindscope.studies.framework.results import Context, Result
from bindscope.studies.framework.trajectory import trajectory_dataset

if TYPE_CHECKING:
    import xarray as xr


def compute_trajectory(context: Context) -> xr.Dataset:
    """Every evaluation of the run, and whether its training has ended."""
    run = context.run
    dataset = trajectory_dataset(run.metrics, run.manifest.config)
    dataset.attrs |= {"status": run.status, "total_steps": run.manifest.total_steps}
    return dataset


TRAJECTORY = Result("trajectory", "reading the evaluations", compute_trajectory, metrics=True)
