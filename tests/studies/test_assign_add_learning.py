"""AA1 on evaluations whose verdict is known because we simulate them; what the trajectory of sums shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bindscope.cli.trajectory import format_trajectory
from bindscope.families import find_family
from bindscope.measures.arithmetic.spikes import SUM_PHASES
from bindscope.studies.assign_add.learning.judge import AA1, fraction_with_phases
from bindscope.studies.assign_add.learning.phases import phases_and_spikes
from bindscope.studies.assign_add.seeds import SEEDS
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset, transitions_of
from bindscope.studies.plots.panels import figure_trajectory, trajectory_panels
from bindscope.studies.plots.style import save_figure
from measures.simulated_sums import UNEVEN, simulate_sums, sums_records

EACH_250 = np.arange(0, 20001, 250)


def trajectory(steps=EACH_250, status: str = "finished", **settings) -> xr.Dataset:
    dataset = trajectory_dataset(sums_records(simulate_sums(steps, **settings), steps), family="assign_add")
    dataset.attrs |= {"status": status, "total_steps": 20000, "run": "written"}
    return dataset


@pytest.mark.parametrize("steps", [EACH_250, UNEVEN], ids=["each 250", "uneven"])
def test_three_phases_and_two_spikes_replicate(steps, tmp_path: Path):
    results = {"trajectory": trajectory(steps)}
    finding = AA1.judge(results)
    assert finding.verdict == "replicates", finding.reason
    labels = [quantity.label for quantity in finding.quantities]
    assert sum(label.startswith("spike") for label in labels) == 2
    assert "0add at the end, held out in both orders" in labels
    assert save_figure(AA1.draw(results), tmp_path / "aa1.svg").stat().st_size > 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"second": False}, "No refinement phase"), ({"first": False}, "No assignment and no refinement phase")],
)
@pytest.mark.parametrize(
    ("status", "how_far"),
    [
        ("training", "training is at step 20,000 of 20,000; verify again"),
        ("interrupted", "training was interrupted at step 20,000 of 20,000; 'bindscope resume' goes on"),
        ("finished", "training ended at step 20,000 of 20,000; train for longer, as with --set training.steps=40000"),
    ],
)
def test_a_run_that_has_not_come_to_its_last_phases_is_inconclusive(settings, words, status, how_far):
    finding = AA1.judge({"trajectory": trajectory(status=status, **settings)})
    assert finding.verdict == "inconclusive"
    assert f"{words} was found: {how_far}" in finding.reason


def test_a_run_that_passes_over_a_phase_differs():
    dataset = trajectory(first=False, second=False)
    dataset.split_accuracy.loc[{"step": slice(10000, None)}] = 0.99  # everything at once
    finding = AA1.judge({"trajectory": dataset})
    assert finding.verdict == "differs"
    assert "No assignment phase was found" in finding.reason


def test_few_evaluations_are_judged_neither_while_training_nor_after():
    after, during = (AA1.judge({"trajectory": trajectory(UNEVEN[:7], status)}) for status in ("finished", "training"))
    assert (after.verdict, during.verdict) == ("not testable", "inconclusive")
    assert "a smaller training.evaluate_every" in after.reason


def test_a_run_without_the_second_spike_differs_though_it_has_all_phases():
    dataset = trajectory()
    slow = np.clip((dataset.step.values - 6000) / 13000, 0, 1)
    for split in ("1var", "2var1", "2var2"):
        dataset.split_accuracy.loc[{"split": split}] = 0.99 * slow
    finding = AA1.judge({"trajectory": dataset})
    assert finding.verdict == "differs"
    assert "No later spike lifts the splits in restricted positions alone" in finding.reason


@pytest.mark.parametrize("steps", [EACH_250, UNEVEN], ids=["each 250", "uneven"])
def test_shuffled_evaluations_show_no_such_phases(steps):
    assert fraction_with_phases(trajectory(steps), n_shuffles=60) <= 0.05


def test_a_control_that_fails_is_said(monkeypatch):
    monkeypatch.setattr("bindscope.studies.assign_add.learning.judge.fraction_with_phases", lambda dataset: 0.5)
    finding = AA1.judge({"trajectory": trajectory()})
    assert finding.verdict == "differs"
    assert "control is not" in finding.reason


def test_a_late_spike_of_every_split_is_not_the_second_one():
    dataset = trajectory()
    late = dataset.step.values < 15000
    for split in ("1tr", "1add"):
        dataset.split_accuracy.loc[{"split": split}] = np.where(late, 0.3, 0.99)
    finding = AA1.judge({"trajectory": dataset})
    assert finding.verdict == "differs"


def test_a_split_that_may_end_below_the_bound_is_inconclusive():
    dataset = trajectory()
    dataset.split_accuracy.loc[{"step": 20000, "split": "1var"}] = 0.945
    finding = AA1.judge({"trajectory": dataset})
    assert finding.verdict == "inconclusive"
    assert "1var ends at 94.5 % [93.4–95.4]" in finding.reason
    dataset.split_accuracy.loc[{"step": 20000, "split": "1var"}] = 0.9
    assert AA1.judge({"trajectory": dataset}).verdict == "differs"


def test_evaluations_too_far_apart_to_see_a_spike_are_inconclusive():
    sparse = np.array([0, 400, 1000, 1500, 2000, 2500, 3000, 4000, 7000, 7500, 8000, 12000, 17000, 17500, 20000])
    finding = AA1.judge({"trajectory": trajectory(sparse)})
    assert finding.verdict == "inconclusive", finding.reason
    assert "between the evaluations at 4,000 and 7,000, too far apart to see a spike" in finding.reason


def test_a_climb_between_near_evaluations_is_no_unseen_spike():
    dataset = trajectory()
    slow = np.clip((dataset.step.values - 1000) / 15000, 0, 1)
    for split in ("1tr", "1add", "1var", "2tr", "2add", "2var1", "2var2"):
        dataset.split_accuracy.loc[{"split": split}] = 0.99 * slow
    finding = AA1.judge({"trajectory": dataset})
    assert finding.verdict == "differs"
    assert "too far apart" not in finding.reason


def test_the_seeds_behind_a_finding_are_stated():
    results = {"trajectory": trajectory()}
    assert "One seed" in AA1.judge(results).reason
    verdicts = np.array([[["replicates"], ["differs"], ["inconclusive"]]], dtype=object)
    seeds = xr.Dataset({"verdict": (("variant", "seed", "claim"), verdicts)}, {"claim": ["AA1"]})
    finding = AA1.judge({**results, SEEDS: seeds})
    assert finding.verdict == "replicates"
    assert "Over 3 seeds of assign-add: 1 replicates, 1 differs, 1 inconclusive" in finding.reason
    assert (finding.quantities[-1].value, finding.quantities[-1].n) == (pytest.approx(1 / 3), 3)


def test_the_trajectory_of_sums_shows_phases_spikes_and_halves(tmp_path: Path):
    dataset = trajectory()
    phases, spikes = phases_and_spikes(dataset)
    assert [phase.name for phase in phases_of(dataset)] == [phase.name for phase in phases] == list(SUM_PHASES)
    family = find_family("assign_add")
    events = family.list_events(dataset)
    assert [row[0] for row in events[0].rows] == [str(spike.number) for spike in spikes]
    text = format_trajectory("made", phases, transitions_of(dataset), family.describe_phases(), events)
    assert "2var1 2var2" in text
    assert "refinement" in text
    assert "splits that rose" in text
    assert [panel.name for panel in trajectory_panels(dataset)][:2] == ["accuracy", "swap"]
    figure = figure_trajectory(dataset)
    bands = [patch for patch in figure.axes[0].patches if patch.get_alpha() == 0.16]
    assert len(bands) == 2
    assert save_figure(figure, tmp_path / "sums.svg").stat().st_size > 0
