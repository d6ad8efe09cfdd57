"""How many seeds a claim about learning rests on: the run itself, and the experiment ``assign-add-seeds`` where it was trained.

The experiment's dataset holds, for every seed, the verdict of each claim on that seed's own run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.studies.framework.claims import VERDICTS, Finding
from bindscope.studies.framework.experiments import Cell, find_experiment_dataset, load_experiment_dataset
from bindscope.studies.framework.quantities import fraction_of
from bindscope.studies.framework.results import Context, Result

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

SEEDS = "assign-add-seeds"
OF_A_RUN = ("AA1", "AA4", "AA5", "AA6", "AA7", "AA8", "AA9", "AA10")  # claims that a single training answers


def state_seeds(claim: str, finding: Finding, results: Mapping[str, xr.Dataset]) -> Finding:
    """The finding of one run, with how many seeds there are and in how many of them the claim replicates."""
    if finding.verdict == "not testable":
        return finding
    found = _verdicts(claim, results.get(SEEDS))
    if not found:
        return finding.adding(f"One seed: 'bindscope experiment {SEEDS}' trains eight.")
    replicating = fraction_of("seeds that replicate", found.count("replicates") / len(found), len(found))
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in found)
    finding = replace(finding, quantities=(*finding.quantities, replicating))
    return finding.adding(f"Over {len(found)} seeds of assign-add: {counts}.")


def _verdicts(claim: str, dataset: xr.Dataset | None) -> list[str]:
    if dataset is None or "verdict" not in dataset or claim not in dataset.claim.values:
        return []
    found = [str(verdict) for verdict in dataset.verdict.sel(claim=claim).values.ravel()]
    return [verdict for verdict in found if verdict in VERDICTS]


def compute_seeds(context: Context) -> xr.Dataset:
    """The dataset of the experiment; an empty one until it was trained, or for a run that is no such model."""
    from bindscope.studies.framework.presets import find_preset

    path = find_experiment_dataset(SEEDS, context.runs_directory)
    same = context.run.config.model == find_preset("assign-add").config.model
    return load_experiment_dataset(path) if path is not None and same else xr.Dataset()


def measure_seeds(runs: Mapping[Cell, Run], on_progress: Callable[[int, int], None] | None = None) -> xr.Dataset:
    """Over (variant, seed, claim) ``verdict``, judged on the checkpoints around each run's spikes, its first and its last."""
    from bindscope.studies.framework.measuring import measure_cells

    return measure_cells(runs, judge_run, on_progress)


def judge_run(run: Run, n: int | None = None) -> xr.Dataset:
    """``verdict`` (claim) of one run; ``n`` as in ``bindscope verify --n``."""
    from bindscope.runs.thin import thin_run
    from bindscope.studies.assign_add.learning.spikes import window_steps
    from bindscope.studies.assign_add.study import STUDY
    from bindscope.studies.framework.results import Library
    from bindscope.studies.framework.verify import verify

    with TemporaryDirectory() as folder:
        steps = (run.steps[0], *window_steps(run), run.steps[-1])
        thinned = thin_run(run, Path(folder) / "run", steps, dtype="float32")
        library = Library(thinned, STUDY.results, Path(folder) / "results", n=n, runs_directory=Path(folder))
        judged = verify(library, [STUDY.find_claim(claim) for claim in OF_A_RUN]).judged
        verdicts = np.array([each.finding.verdict for each in judged], dtype=object)
    return xr.Dataset({"verdict": ("claim", verdicts)}, {"claim": list(OF_A_RUN)})


def conclude_seeds(dataset: xr.Dataset) -> str:
    """When each seed learned, and how many of them replicate each claim."""
    from bindscope.studies.assign_add.experiments.conclude import conclude_options

    found = {claim: _verdicts(claim, dataset) for claim in OF_A_RUN}
    counts = [f"{claim} in {each.count('replicates')} of {len(each)}" for claim, each in found.items() if each]
    return (
        f"{conclude_options(dataset)} Claims that replicate: {', '.join(counts)}."
        if counts
        else conclude_options(dataset)
    )


RESULTS = (Result(SEEDS, "verdicts of other seeds", compute_seeds, kept=False, experiments=(SEEDS,)),)
