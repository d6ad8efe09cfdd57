"""Sweeps over sums: what runs recorded is gathered, thresholds are judged on made-up sweeps, and told and drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
import xarray as xr

from bindscope.cli.experiment import format_cells
from bindscope.measures.evaluation import read_answers
from bindscope.measures.stats.thresholds import logistic_curve
from bindscope.model.transformer import Transformer
from bindscope.runs.execute import train_run
from bindscope.studies.assign_add.experiments.measure import count_new_sums
from bindscope.studies.assign_add.presets import SHAPE
from bindscope.studies.assign_add.sweeps.draw import draw_sweep
from bindscope.studies.assign_add.sweeps.judge import AA2, AA3, judge_sweep
from bindscope.studies.assign_add.sweeps.measure import compute_sweep
from bindscope.studies.assign_add.sweeps.swept import (
    ALL_NEW,
    PAIR_FRACTION,
    TWO_VARIABLE_FREQUENCY,
    TWO_VARIABLE_ROWS,
    Sweep,
    conclude_sweep,
)
from bindscope.studies.framework.experiments import (
    experiment_dataset,
    find_experiment,
    plan_cells,
    save_experiment_dataset,
    train_cells,
)
from bindscope.studies.framework.preset import model_for
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Context, NotTestable
from bindscope.studies.plots.style import save_figure
from bindscope.tasks.assign_add import SPLIT_NAMES, AssignAddTask

FLASH = {
    "training.steps": 4, "training.batch_size": 8, "training.evaluate_every": 2, "training.evaluation_size": 40,
}  # fmt: skip
VALUES = np.linspace(0.05, 0.95, 10)


def made_sweep(
    sweep: Sweep, asked: np.ndarray, learned: float = 0.99, n_seeds: int = 2, preset: str = "assign-add-small"
) -> xr.Dataset:
    """A sweep whose runs end with the ``asked`` accuracies in the split that the sweep is about, ``learned`` in others."""
    n = len(asked)
    last = np.full((n, n_seeds, len(SPLIT_NAMES)), learned)
    scatter = np.random.default_rng(0).normal(0, 0.003, (n, n_seeds))
    ends = np.clip(asked[:, None] + scatter, 0, 1)
    for split in {sweep.asked.split, sweep.beside.split} - {ALL_NEW}:
        last[..., SPLIT_NAMES.index(split)] = ends
    new = {}
    if sweep.asked.split == ALL_NEW:
        new["new_accuracy"] = (("variant", "seed"), ends)
        new["new_weight"] = ("split", [0, 0, 0, 0, 0, 0, 0.25, 0.6, 0.15])
    halves = np.stack([last, last], -1)
    dims = ("variant", "seed", "split")
    return xr.Dataset(
        {
            "last_accuracy": (dims, last),
            "last_half_accuracy": ((*dims, "half"), halves),
            "split_accuracy": (("variant", "seed", "step", "split"), np.stack([last / 2, last], 2)),
            "last_step": (("variant", "seed"), np.full((n, n_seeds), 1000.0)),
            "split_n": ("split", np.full(len(SPLIT_NAMES), 500)),
            **new,
        },
        {
            "variant": [f"value-{value:g}" for value in VALUES[:n]],
            "seed": np.arange(n_seeds),
            "step": [0, 1000],
            "split": list(SPLIT_NAMES),
            "half": ["swap_seen", "both_held"],
            sweep.coordinate: ("variant", VALUES[:n]),
        },
        {"preset": preset},
    )


STEEP = logistic_curve(VALUES, 0.4, 0.15, 1 / 31, 1.0)
BOTH = pytest.mark.parametrize(("sweep", "claim"), [(PAIR_FRACTION, AA2), (TWO_VARIABLE_ROWS, AA3)], ids=["AA2", "AA3"])


@BOTH
def test_a_threshold_replicates_and_is_told_with_its_interval(sweep, claim):
    finding = claim.judge({claim.results[0]: made_sweep(sweep, STEEP)})
    assert finding.verdict == "replicates", finding.reason
    threshold = finding.quantities[0]
    assert threshold.value == pytest.approx(0.4, abs=0.03)
    assert threshold.low <= 0.4 <= threshold.high
    assert "20 runs of assign-add-small" in finding.reason


@BOTH
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (np.linspace(0.03, 1, 10), "no threshold"),
        (np.full(10, 0.97), "not from failing to succeeding"),
        (np.full(10, 0.03), "not from failing to succeeding"),
        (STEEP[::-1], "not from failing to succeeding"),
    ],
    ids=["a line", "always right", "always wrong", "falling"],
)
def test_what_is_no_threshold_differs(sweep, claim, asked, words):
    finding = claim.judge({claim.results[0]: made_sweep(sweep, asked)})
    assert finding.verdict == "differs"
    assert words in finding.reason


@BOTH
def test_where_training_itself_fails_the_control_does(sweep, claim):
    finding = claim.judge({claim.results[0]: made_sweep(sweep, STEEP, learned=0.6)})
    assert finding.verdict == "differs"
    assert "its control is not" in finding.reason
    assert "training itself fails" in finding.reason


@BOTH
def test_where_training_may_have_failed_the_claim_is_inconclusive(sweep, claim):
    finding = claim.judge({claim.results[0]: made_sweep(sweep, STEEP, learned=0.91)})
    assert finding.verdict == "inconclusive"
    assert "may not be learned everywhere" in finding.reason


@BOTH
def test_one_seed_that_does_not_succeed_at_the_end_is_inconclusive(sweep, claim):
    dataset = made_sweep(sweep, STEEP)
    where = {"variant": dataset.variant.values[-1], "seed": 1}
    if sweep.asked.split == ALL_NEW:
        dataset.new_accuracy.loc[where] = 0.8
    else:
        dataset.last_accuracy.loc[{**where, "split": sweep.asked.split}] = 0.8
    finding = claim.judge({claim.results[0]: dataset})
    assert finding.verdict == "inconclusive", finding.reason
    assert "or not succeed at the other" in finding.reason


def test_the_sweep_that_shows_rows_less_often_stands_beside_the_one_that_removes_them():
    results = {
        "two-variable-rows": made_sweep(TWO_VARIABLE_ROWS, STEEP),
        "two-variable-frequency": made_sweep(TWO_VARIABLE_FREQUENCY, STEEP[::-1]),
    }
    finding = AA3.judge(results)
    assert finding.verdict == "replicates", finding.reason  # whatever the other sweep shows
    assert finding.quantities[-1].label == "threshold, how many sums of two variables are enough"


def test_new_two_variable_sums_are_counted_one_by_one():
    task = AssignAddTask(5, 4)
    model = Transformer(model_for(task, **SHAPE, d_model=8, d_head=8, d_mlp=8), torch.Generator().manual_seed(0))
    found = count_new_sums(model, task)
    rng, right = np.random.default_rng(0), []
    for split in ("2add", "2var1", "2var2"):
        batch = task.list_split(rng, split)
        right += [read_answers(model, batch.take([row])).argmax() == batch.targets[row, 0] for row in range(len(batch))]
    assert int(found.new_n) == len(right) == sum(task.count_split(split) for split in ("2add", "2var1", "2var2"))
    assert float(found.new_accuracy) == pytest.approx(np.mean(right))


@BOTH
def test_a_threshold_that_may_lie_outside_the_sweep_does_not_replicate(sweep, claim):
    early = np.array([0.03, *np.full(9, 0.99)])  # between the first two values, so that its interval reaches the first
    finding = claim.judge({claim.results[0]: made_sweep(sweep, early)})
    assert finding.verdict == "inconclusive", finding.reason
    assert "not clearly inside the sweep" in finding.reason


@BOTH
def test_values_at_the_ends_alone_cannot_tell_a_threshold_from_a_line(sweep, claim):
    dataset = made_sweep(sweep, np.repeat([0.03, 0.99], 2))
    dataset = dataset.assign_coords({sweep.coordinate: ("variant", [0.05, 0.06, 0.94, 0.95])})
    finding = claim.judge({claim.results[0]: dataset})
    assert finding.verdict == "differs"
    assert "A straight line would pass as steep too" in finding.reason


def test_runs_that_succeed_here_and_there_do_not_pass_the_shuffled_control():
    scattered = np.array([0.03, 1, 0.03, 1, 0.03, 0.03, 1, 0.03, 1, 1])
    finding = judge_sweep(PAIR_FRACTION, {"pair-fraction": made_sweep(PAIR_FRACTION, scattered, n_seeds=1)})
    assert finding.verdict == "differs"
    (shuffled,) = [quantity for quantity in finding.control if "shuffled" in quantity.label]
    assert shuffled.value > 0.05


def test_too_few_values_are_not_testable():
    finding = judge_sweep(PAIR_FRACTION, {"pair-fraction": made_sweep(PAIR_FRACTION, STEEP[:3])})
    assert finding.verdict == "not testable"
    assert "3 values" in finding.reason
    assert "bindscope experiment pair-fraction" in finding.reason


@BOTH
def test_the_figure_and_the_conclusion_of_a_sweep(sweep, claim, tmp_path):
    dataset = made_sweep(sweep, STEEP)
    assert save_figure(claim.draw({claim.results[0]: dataset}), tmp_path / "claim.svg").stat().st_size > 5000
    assert save_figure(draw_sweep(dataset.isel(variant=slice(0, 2))), tmp_path / "few.svg").is_file()  # no fit to draw
    text = conclude_sweep(dataset)
    assert text.startswith("20 runs of assign-add-small at 10 values")
    assert "the fitted threshold is 0.4" in text
    assert "too few values for a threshold" in conclude_sweep(dataset.isel(variant=slice(0, 2)))


def test_the_table_of_a_sweep_has_a_row_for_each_value_and_a_column_for_each_split():
    dataset = made_sweep(PAIR_FRACTION, STEEP)
    dataset.last_step[9, 1] = np.nan  # a run that has not ended
    heading, _, *rows = format_cells(dataset, {}).splitlines()
    assert heading.split() == ["variant", "seeds", "steps", *SPLIT_NAMES]
    assert len(rows) == 10
    assert rows[9].split()[:3] == ["value-0.95", "1", "1,000"]


@dataclass(frozen=True)
class OfConfig:
    """As much of a run as a sweep's result reads."""

    config: object


def test_a_claim_reads_the_sweep_of_its_own_size_else_the_other(tmp_path):
    def context(preset):
        return Context(OfConfig(find_preset(preset).config), runs_directory=tmp_path)

    def keep(name, dataset):
        save_experiment_dataset(dataset, tmp_path / f"experiment-{name}" / f"{name}.nc")

    keep("pair-fraction-small", made_sweep(PAIR_FRACTION, STEEP))
    assert compute_sweep("pair-fraction", context("assign-add")).attrs["preset"] == "assign-add-small"
    keep("pair-fraction", made_sweep(PAIR_FRACTION, STEEP[:2], preset="assign-add"))  # begun, and too short to be used
    assert compute_sweep("pair-fraction", context("assign-add")).attrs["preset"] == "assign-add-small"
    keep("pair-fraction", made_sweep(PAIR_FRACTION, STEEP, preset="assign-add"))
    assert compute_sweep("pair-fraction", context("assign-add")).attrs["preset"] == "assign-add"
    assert compute_sweep("pair-fraction", context("assign-add-small")).attrs["preset"] == "assign-add-small"
    other = find_preset("assign-add-small").config
    other = replace(other, task=replace(other.task, operator="*"))
    with pytest.raises(NotTestable, match="another operator"):
        compute_sweep("pair-fraction", Context(OfConfig(other), runs_directory=tmp_path))


def test_runs_on_sums_are_gathered_with_their_splits_and_the_swept_number(tmp_path):
    experiment = find_experiment("pair-fraction-small")
    experiment = replace(experiment, changes=FLASH, variants=experiment.variants[3:5])
    cells = plan_cells(experiment, [0])
    for cell in cells:
        train_run(cell.config, cell.path_in(tmp_path), device="cpu", threads=1)
    runs = dict(train_cells(cells, tmp_path))
    dataset = experiment_dataset(experiment, runs)
    assert list(dataset.pair_fraction.values) == [0.35, 0.45]
    assert dataset.split_accuracy.sizes == {"variant": 2, "seed": 1, "step": 3, "split": 9}
    for cell, run in runs.items():
        record = run.metrics[-1]
        ended = dataset.sel(variant=cell.variant, seed=0)
        for split in SPLIT_NAMES:
            assert ended.last_accuracy.sel(split=split) == record[split]["accuracy"]
            assert ended.split_accuracy.sel(split=split, step=4) == record[split]["accuracy"]
        held = record["0add"]["both_held"]["accuracy"]
        assert ended.last_half_accuracy.sel(split="0add", half="both_held") == held
    assert (dataset.split_n == 40).all()
    assert (dataset.last_step == 4).all()
    assert np.isnan(dataset.learned).all()
    assert dataset.attrs["sweeps"] == "task.pair_fraction"
    assert "too few values" in conclude_sweep(dataset)
