"""The progress measures of the released checkpoints are those of the notes beside them; their spikes are found."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.progress import draw_probes, measure_progress
from bindscope.measures.arithmetic.spikes import SUM_PHASES, detect_sum_phases, find_spikes
from bindscope.measures.evaluation import build_evaluator
from bindscope.model.convert import load_checkpoint
from bindscope.tasks.assign_add import SPLIT_NAMES, AssignAddTask

SHARED = Path(os.environ.get("BINDSCOPE_SHARED", Path(__file__).parents[3] / "shared"))
CHECKPOINTS = SHARED / "data" / "assign_and_add"
NOTES = SHARED / "papers" / "assign-and-add.md"
N_PER_SPLIT = 60
N_PUBLISHED = 300  # the notes do not say how many sequences their sampled readings are over
N_EVALUATED = 300

pytestmark = pytest.mark.skipif(
    not (CHECKPOINTS.is_dir() and NOTES.is_file()), reason="the released checkpoints are not on this machine"
)
TASK = AssignAddTask()


def released_steps() -> list[int]:
    return sorted(int(path.stem.rsplit("_", 1)[1]) for path in CHECKPOINTS.glob("checkpoint_step_*.pth"))


def printed_readings() -> dict[str, dict[int, str]]:
    """measure → step → reading as printed; of a range of steps both ends, if they were released."""
    found: dict[str, dict[int, str]] = {}
    for line in NOTES.read_text().splitlines():
        name = re.match(r"- `(\w+)`:", line)
        if name is None:
            continue
        readings = re.findall(r"≈?(1\.0|\.\d+) \((\d+)(?:–(\d+))?( on)?\)", line)
        found[name[1]] = {int(step): fraction for fraction, *ends, _ in readings for step in ends if step}
        since = re.search(r"1\.0 (?:from|by) (\d+)\.", line)
        if since:
            found[name[1]][int(since[1])] = "1.0"
    return found


@pytest.fixture(scope="module")
def measured() -> dict[int, dict[str, tuple[float, int]]]:
    probes = draw_probes(TASK, np.random.default_rng(0), N_PER_SPLIT)
    return {
        step: measure_progress(
            SumForms.of(load_checkpoint(_path(step), activation="relu", norm="none"), TASK), TASK, probes
        )
        for step in released_steps()
    }


def _path(step: int) -> Path:
    return CHECKPOINTS / f"checkpoint_step_{step}.pth"


def test_readings_of_weights_agree_to_the_last_printed_digit(measured):
    compared = 0
    for name in ("ov2_mlp2_accuracy", "qk1_num_to_prev_var", "qk2_ov1_var_identity"):
        for step, text in printed_readings()[name].items():
            digits = len(text.partition(".")[2])
            if step in measured:
                assert round(measured[step][name][0], digits) == float(text), (name, step)
                compared += 1
    assert compared >= 6


def test_after_they_reach_one_the_readings_of_weights_stay_there(measured):
    late = {step: row for step, row in measured.items() if step >= 13001}
    assert all(row["qk2_ov1_var_identity"][0] == 1 for row in late.values())
    assert all(row["qk1_num_to_prev_var"][0] == 1 for step, row in measured.items() if step >= 1001)
    early = [row["qk2_ov1_var_identity"][0] for step, row in measured.items() if step <= 3001]
    assert max(early) == pytest.approx(1 / 12)


def test_readings_over_sequences_agree_within_sampling_error(measured):
    compared = 0
    for name in ("attn_l1_equal_to_operands", "attn_l1_num_to_prev", "attn_l2_equal_to_values"):
        ours = f"{name}_all" if name == "attn_l1_equal_to_operands" else name  # the notes' reading is over all splits
        for step, text in printed_readings()[name].items():
            if step not in measured:
                continue
            fraction, n = measured[step][ours]
            rate = min(max(float(text), 0.005), 0.995)
            error = 4 * (rate * (1 - rate) * (1 / n + 1 / N_PUBLISHED)) ** 0.5
            assert fraction == pytest.approx(float(text), abs=0.005 + error), (name, step)
            compared += 1
    assert compared >= 7


def test_the_authors_reading_of_the_first_look_is_over_sums_with_at_most_one_variable(measured):
    """It is .947 from step 7,001 to 12,001, where that over all nine splits is .857."""
    fraction, n = measured[10001]["attn_l1_equal_to_operands"]
    error = 4 * (0.947 * 0.053 * (1 / n + 1 / N_PUBLISHED)) ** 0.5
    assert fraction == pytest.approx(0.947, abs=error)
    everywhere, n = measured[10001]["attn_l1_equal_to_operands_all"]
    assert everywhere == pytest.approx(0.857, abs=4 * (0.857 * 0.143 * (1 / n + 1 / N_PUBLISHED)) ** 0.5)
    assert fraction - everywhere > 0.05


def test_names_can_be_read_off_numbers_once_they_look_back(measured):
    assert measured[20001]["probe_l1_var_from_num"][0] == 1
    assert measured[401]["probe_l1_var_from_num"][0] < 0.7


def test_both_spikes_and_the_three_phases_are_found():
    steps = released_steps()
    evaluate = build_evaluator(TASK, N_EVALUATED, seed=0)
    scores = [evaluate(load_checkpoint(_path(step), activation="relu", norm="none")) for step in steps]
    accuracy = np.array([[score[split]["accuracy"] for split in SPLIT_NAMES] for score in scores])
    first, second = find_spikes(steps, accuracy, SPLIT_NAMES, N_EVALUATED)
    assert (first.before_step, first.after_step) == (5301, 5401)
    assert 14501 <= second.before_step < second.after_step <= 16001
    assert [phase.name for phase in detect_sum_phases(steps, accuracy, SPLIT_NAMES)] == list(SUM_PHASES)
