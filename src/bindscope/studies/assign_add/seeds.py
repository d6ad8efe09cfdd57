"""How many seeds a claim about learning rests on: the run itself, and the experiment ``assign-add-seeds`` where it was trained.

The experiment's dataset holds, for every seed, the verdict of each claim on that seed's own run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import xarray as xr

from bindscope.studies.framework.claims import VERDICTS, Finding
from bindscope.studies.framework.experiments import find_experiment_dataset, load_experiment_dataset
from bindscope.studies.framework.quantities import fraction_of
from bindscope.studies.framework.results import Context, Result

SEEDS = "assign-add-seeds"
OF_A_RUN = ("AA1", "AA4", "AA5", "AA6", "AA7", "AA8", "AA9", "AA10")  # claims that a single training answers


def state_seeds(claim: str, finding: Finding, results: Mapping[str, xr.Dataset]) -> Finding:
    """The finding of one run, with how many seeds there are and in how many of them the claim replicates."""
    if finding.verdict == "not testable":
        return finding
    found = verdicts_of(claim, results.get(SEEDS))
    if not found:
        return finding.adding(f"One seed: 'bindscope experiment {SEEDS}' trains eight.")
    replicating = fraction_of("seeds that replicate", found.count("replicates") / len(found), len(found))
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in found)
    finding = replace(finding, quantities=(*finding.quantities, replicating))
    return finding.adding(f"Over {len(found)} seeds of assign-add: {counts}.")


def verdicts_of(claim: str, dataset: xr.Dataset | None) -> list[str]:
    """What each seed says about a claim; nothing where there is no dataset."""
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


RESULTS = (Result(SEEDS, "verdicts of other seeds", compute_seeds, kept=False, experiments=(SEEDS,)),)
