"""The experiment on seeds: every run judged by itself, what is stated of it, and runs of other models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from bindscope.studies.assign_add.experiments.seeds import conclude_seeds, judge_run
from bindscope.studies.assign_add.seeds import OF_A_RUN, SEEDS, compute_seeds
from bindscope.studies.framework.claims import VERDICTS
from bindscope.studies.framework.experiments import find_experiment, plan_cells, save_experiment_dataset
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Context
from bindscope.studies.framework.verify import find_study
from bindscope.tasks.assign_add import SPLIT_NAMES
from studies.made_sums import make_sums


def test_eight_seeds_of_the_published_preset_are_planned():
    cells = plan_cells(find_experiment(SEEDS))
    assert [cell.seed for cell in cells] == list(range(8))
    published = find_preset("assign-add").config
    assert all((cell.config.task, cell.config.model) == (published.task, published.model) for cell in cells)
    assert {cell.config.training.steps for cell in cells} == {40_000}


def test_a_run_is_judged_by_every_claim_that_one_training_answers(tmp_path: Path):
    dataset = judge_run(make_sums(tmp_path / "made", steps=(0, 100)), n=40)
    assert dataset.claim.values.tolist() == list(OF_A_RUN)
    assert set(dataset.verdict.values) <= set(VERDICTS)
    assert str(dataset.verdict.sel(claim="AA4").values) == "replicates"  # its weights are written so
    assert (
        str(dataset.verdict.sel(claim="AA10").values) == "inconclusive"
    )  # it has no evaluations yet, and so no spikes


def test_all_claims_about_one_training_read_the_seeds():
    study = find_study("assign_add")
    reading = {claim.id for claim in study.claims if SEEDS in claim.results}
    assert reading == set(OF_A_RUN)
    assert all(claim.fixed is not None for claim in study.claims)


@dataclass(frozen=True)
class OfConfig:
    config: object


def made(verdicts: list[str]) -> xr.Dataset:
    shape = (1, len(verdicts))
    return xr.Dataset(
        {
            "verdict": (("variant", "seed", "claim"), np.array(verdicts, dtype=object).reshape(*shape, 1)),
            "last_step": (("variant", "seed"), np.full(shape, 40_000.0)),
            "learned": (("variant", "seed", "split"), np.full((*shape, len(SPLIT_NAMES)), 9_000.0)),
        },
        {"variant": ["published"], "seed": range(len(verdicts)), "claim": ["AA1"], "split": list(SPLIT_NAMES)},
    )


def test_the_dataset_is_read_for_its_own_model_alone(tmp_path: Path):
    save_experiment_dataset(made(["replicates", "differs"]), tmp_path / f"experiment-{SEEDS}" / f"{SEEDS}.nc")
    own, other = (
        compute_seeds(Context(OfConfig(find_preset(name).config), runs_directory=tmp_path))  # type: ignore[arg-type]
        for name in ("assign-add", "assign-add-small")
    )
    assert own.verdict.values.ravel().tolist() == ["replicates", "differs"]
    assert "verdict" not in other


def test_the_conclusion_counts_the_seeds_that_replicate():
    assert "Claims that replicate: AA1 in 1 of 2." in conclude_seeds(made(["replicates", "differs"]))
