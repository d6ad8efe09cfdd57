"""The experiment ``assign-add-seeds``: every seed's run is judged by itself, claim by claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import xarray as xr

from bindscope.runs.directory import Run
from bindscope.runs.thin import thin_run
from bindscope.studies.assign_add.experiments.conclude import conclude_options
from bindscope.studies.assign_add.learning.spikes import window_steps
from bindscope.studies.assign_add.seeds import OF_A_RUN, verdicts_of
from bindscope.studies.assign_add.study import STUDY
from bindscope.studies.framework.experiments import Cell
from bindscope.studies.framework.measuring import measure_cells
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import verify


def measure_seeds(runs: Mapping[Cell, Run], on_progress: Callable[[int, int], None] | None = None) -> xr.Dataset:
    """Over (variant, seed, claim) ``verdict``, judged on the checkpoints around each run's spikes, its first and its last."""
    return measure_cells(runs, judge_run, on_progress)


def judge_run(run: Run, n: int | None = None) -> xr.Dataset:
    """``verdict`` (claim) of one run; ``n`` as in ``bindscope verify --n``."""
    with TemporaryDirectory() as folder:
        steps = (run.steps[0], *window_steps(run), run.steps[-1])
        thinned = thin_run(run, Path(folder) / "run", steps, dtype="float32")
        library = Library(thinned, STUDY.results, Path(folder) / "results", n=n, runs_directory=Path(folder))
        judged = verify(library, [STUDY.find_claim(claim) for claim in OF_A_RUN]).judged
        verdicts = np.array([each.finding.verdict for each in judged], dtype=object)
    return xr.Dataset({"verdict": ("claim", verdicts)}, {"claim": list(OF_A_RUN)})


def conclude_seeds(dataset: xr.Dataset) -> str:
    """When each seed learned, and how many of them replicate each claim."""
    found = {claim: verdicts_of(claim, dataset) for claim in OF_A_RUN}
    counts = [f"{claim} in {each.count('replicates')} of {len(each)}" for claim, each in found.items() if each]
    return (
        f"{conclude_options(dataset)} Claims that replicate: {', '.join(counts)}."
        if counts
        else conclude_options(dataset)
    )
