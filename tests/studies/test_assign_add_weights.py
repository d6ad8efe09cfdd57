"""AA8 and AA9 on weights whose verdict is known, and the results they read on a small run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.cli.progress import format_progress
from bindscope.measures.arithmetic.circuit import circuit_matrices, summarise_matrices
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.progress import MEASURES, SAMPLED_MEASURES, measure_weights
from bindscope.model.transformer import Transformer
from bindscope.runs.config import config_to_mapping
from bindscope.runs.directory import Run
from bindscope.runs.manifest import Manifest
from bindscope.studies.assign_add.progress.draw import draw_progress
from bindscope.studies.assign_add.weights.judge import AA8, AA9
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.trajectory import trajectory_dataset
from bindscope.studies.framework.verify import find_study
from bindscope.studies.plots.style import save_figure
from measures.simulated_sums import simulate_sums, sums_records
from measures.written_sums import TASK, written_forms

STUDY = find_study("assign_add")
STEPS = np.arange(0, 20001, 500)


def trajectory(first: bool = True, status: str = "finished") -> xr.Dataset:
    dataset = trajectory_dataset(sums_records(simulate_sums(STEPS, first=first), STEPS), family="assign_add")
    dataset.attrs |= {"status": status, "total_steps": 20000, "run": "written"}
    return dataset


def weights(fresh: float = 0.1, shuffled: float = 0.1, **changes) -> xr.Dataset:
    """Two checkpoints, without and with the written circuit, in which numbers like variables."""
    parts = []
    for forms in (written_forms(previous=-1, copies=False), written_forms(**changes)):
        liking = np.outer(forms.numbers.sum(0), forms.variables.sum(0))
        parts.append(circuit_matrices(dataclasses.replace(forms, qk1=forms.qk1 + liking), TASK))
    dataset = xr.concat([summarise_matrices(part) for part in parts], xr.IndexVariable("step", [0, 20000]))
    dataset = dataset.assign(qk1=parts[-1].qk1, allowed=parts[-1].allowed)
    for name in ("identity", "previous"):
        dataset[f"fresh_{name}"] = ("fresh", np.full(20, fresh))
        dataset[f"shuffled_{name}"] = ("shuffle", np.full(50, shuffled))
    dataset.attrs["run"] = "written"
    return dataset


@pytest.mark.parametrize("claim", [AA8, AA9], ids=lambda claim: claim.id)
def test_the_written_circuit_replicates_and_can_be_drawn(claim, tmp_path: Path):
    results = {"weights": weights(), "trajectory": trajectory()}
    finding = claim.judge(results)
    assert finding.verdict == "replicates", finding.reason
    assert save_figure(claim.draw(results), tmp_path / f"{claim.id}.svg").stat().st_size > 0


@pytest.mark.parametrize(
    ("claim", "changes", "words"),
    [
        (AA8, {"previous": -1}, "9 of 9 contested positions"),
        (AA9, {"forgotten": (1,)}, "1 of 4 variables score higher with another: b"),
        (AA8, {"fresh": 0.9}, "untrained models show it for 90 % already"),
        (AA9, {"fresh": 0.9}, "untrained models show it for 90 % already"),
        (AA8, {"shuffled": 0.9}, "still reaches 90 %"),
        (AA9, {"shuffled": 0.9}, "still reaches 90 %"),
    ],
)
def test_what_is_missing_or_there_without_training_differs(claim, changes, words):
    finding = claim.judge({"weights": weights(**changes), "trajectory": trajectory()})
    assert finding.verdict == "differs"
    assert words in finding.reason


@pytest.mark.parametrize("claim", [AA8, AA9], ids=lambda claim: claim.id)
def test_untrained_models_that_scatter_around_the_bound_are_inconclusive(claim):
    dataset = weights()
    for name in ("identity", "previous"):
        dataset[f"fresh_{name}"] = ("fresh", np.tile([0.1, 0.95], 10))
    finding = claim.judge({"weights": dataset, "trajectory": trajectory()})
    assert finding.verdict == "inconclusive", finding.reason


def test_equals_must_prefer_both_operands():
    dataset = weights()
    dataset.equals_to_position.loc[{"step": 20000, "position": 14}] = -1
    finding = AA8.judge({"weights": dataset, "trajectory": trajectory()})
    assert finding.verdict == "differs"
    assert "= does not score" in finding.reason


def test_numbers_must_prefer_variables_to_what_can_stand_before_them():
    dataset = weights()
    dataset.kind_score.loc[{"step": 20000, "from_kind": "number", "to_kind": "pad"}] = 5
    assert AA8.judge({"weights": dataset, "trajectory": trajectory()}).verdict == "differs"
    dataset = weights()
    dataset.kind_score.loc[{"step": 20000, "from_kind": "number", "to_kind": "operator"}] = 5  # never before a number
    assert AA8.judge({"weights": dataset, "trajectory": trajectory()}).verdict == "replicates"


@pytest.mark.parametrize("claim", [AA8, AA9], ids=lambda claim: claim.id)
@pytest.mark.parametrize(("status", "words"), [("finished", "At its end"), ("training", "Training has not ended")])
def test_a_model_that_looks_nothing_up_has_no_routing_to_judge(claim, status, words):
    finding = claim.judge({"weights": weights(), "trajectory": trajectory(first=False, status=status)})
    assert finding.verdict == "not testable"
    assert words in finding.reason


def make_run(path: Path, steps: tuple[int, ...] = (0, 100, 200), **model) -> Run:
    """Untrained checkpoints of a narrow model, with the evaluations of a simulated run."""
    preset = find_preset("assign-add").config
    shape = dataclasses.replace(preset.model, **({"d_model": 16, "d_head": 16, "d_mlp": 24} | model))
    config = dataclasses.replace(preset, name="made", model=shape)
    run = Run.create(path, Manifest("made", config_to_mapping(config), {}, 200, "finished", thinned=True))
    for step in steps:
        run.write_checkpoint(step, Transformer(shape, torch.Generator().manual_seed(step)).state_dict())
    for record in sums_records(simulate_sums(STEPS), STEPS):
        run.keep_evaluation(record)
    return Run.open(path)


def library_of(run: Run, n: int = 5) -> Library:
    return Library(run, STUDY.results, run.path / "results", n=n)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return make_run(tmp_path_factory.mktemp("sums") / "made")


def test_progress_of_a_run_is_that_of_each_checkpoint(run: Run, tmp_path: Path):
    dataset = library_of(run).fill("progress").dataset
    assert dataset is not None
    assert dataset.step.values.tolist() == [0, 100, 200]
    for step in run.steps:
        expected = measure_weights(SumForms.of(run.checkpoint(step), run.config.task), run.config.task)
        for name, (fraction, _) in expected.items():
            assert float(dataset[name].sel(step=step)) == pytest.approx(fraction)
    for name in SAMPLED_MEASURES:
        assert (dataset[f"{name}_low"] <= dataset[name]).all()
        assert (dataset[name] <= dataset[f"{name}_high"]).all()
    assert all(name in format_progress(dataset) for name in MEASURES)
    assert save_figure(draw_progress(dataset), tmp_path / "progress.svg").stat().st_size > 0


@pytest.mark.parametrize("name", ["progress", "weights"])
def test_a_longer_run_is_measured_only_where_it_is_new(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = make_run(tmp_path / "run", steps=(0, 100))
    before = library_of(run).fill(name).dataset
    run.write_checkpoint(200, Transformer(run.config.model, torch.Generator().manual_seed(9)).state_dict())
    run = Run.open(run.path)
    opened: list[int] = []
    checkpoint = Run.checkpoint
    monkeypatch.setattr(Run, "checkpoint", lambda self, step: opened.append(step) or checkpoint(self, step))
    after = library_of(run).fill(name).dataset
    assert before is not None and after is not None  # noqa: PT018
    assert after.step.values.tolist() == [0, 100, 200]
    assert set(opened) <= {0, 200}  # the counts of progress are read off one of the old ones
    assert 100 not in opened
    shared = [variable for variable in before.data_vars if "step" in before[variable].dims]
    xr.testing.assert_allclose(after[shared].sel(step=[0, 100]), before[shared])


def test_weights_of_a_run_are_kept_with_their_controls(run: Run):
    filled = library_of(run).fill("weights")
    dataset = filled.dataset
    assert dataset is not None
    matrices = circuit_matrices(SumForms.of(run.checkpoint(200), run.config.task), run.config.task)
    np.testing.assert_allclose(dataset.qk1, matrices.qk1, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(dataset.equals_to_variable.sel(step=200), matrices.qk1.sel(query="=")[62:74], rtol=1e-3)
    np.testing.assert_allclose(dataset.variable_identity.sel(step=200), matrices.variable_identity, rtol=1e-3)
    assert float(dataset.fresh_identity.mean()) < 0.3
    assert filled.path is not None
    assert filled.path.stat().st_size < 300_000


def test_a_model_of_another_shape_gives_a_reason(tmp_path: Path):
    run = make_run(tmp_path / "deep", n_layers=3)
    for name in ("progress", "weights"):
        filled = library_of(run).fill(name)
        assert filled.dataset is None
        assert "published shape" in filled.reason
