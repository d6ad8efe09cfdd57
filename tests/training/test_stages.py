"""Training on data that comes in stages."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from bindscope.tasks.binding import BindingTask, Curriculum
from bindscope.tasks.loading import StagedLoader
from bindscope.training.config import OptimizerConfig, ScheduleConfig, TrainingConfig
from bindscope.training.loop import train
from bindscope.training.state import MemoryKeeper, read_tally

CONFIG = TrainingConfig(
    steps=60, batch_size=4, optimizer=OptimizerConfig(lr=1e-2), evaluate_every=10, save_every=5, evaluation_size=8
)


@pytest.fixture
def task() -> BindingTask:
    """So easily passed that a model which knows nothing goes through the stages."""
    curriculum = Curriculum(first_letters=2, pass_at=0.01, full=0.2)
    return BindingTask(
        lines=4, n_variables=4, n_constants=2, max_depth=2, queries=4, balance="weights", curriculum=curriculum
    )


def run(model, task, config=CONFIG, **changes) -> MemoryKeeper:
    keeper = MemoryKeeper()
    loader = StagedLoader(task, seed=0, batch_size=CONFIG.batch_size)
    train(model, loader, config, evaluate=lambda model: {"watched": {"depth 1": 0.0}}, keeper=keeper, **changes)
    return keeper


def test_a_stage_is_passed_when_its_probe_is_answered_and_every_evaluation_says_which_it_is(make_model, task):
    kept = run(make_model(), task)
    numbers = [record["stage"]["number"] for record in kept.evaluations]
    assert numbers == sorted(numbers)
    assert numbers[0] == 1
    assert numbers[-1] == len(task.stages)
    assert kept.evaluations[-1]["stage"]["name"] == "4 letters, 4 lines"
    starts = kept.evaluations[-1]["stage"]["starts"]
    assert len(starts) == len(task.stages) - 1
    assert all(step % 10 == 0 for step in starts)


def test_a_stage_that_is_not_learned_is_not_passed(make_model, task):
    hard = replace(task, curriculum=replace(task.curriculum, pass_at=1.0, full=0.0))
    untaught = replace(CONFIG, optimizer=OptimizerConfig(lr=1e-12))
    keeper = MemoryKeeper()
    loader = StagedLoader(hard, seed=0, batch_size=4)
    train(make_model(), loader, untaught, evaluate=lambda model: {"watched": {"depth 1": 0.0}}, keeper=keeper)
    assert {record["stage"]["number"] for record in keeper.evaluations} == {1}


def test_going_on_from_any_state_passes_the_same_stages_with_the_same_weights(make_model, task):
    whole = run(make_model(), task)
    for step in (5, 10, 25, 55):
        state = whole.states[step]
        again = replace(state, tally=read_tally({**vars(state.tally), "stage_starts": list(state.tally.stage_starts)}))
        resumed = run(make_model(seed=9), task, state=again)
        assert resumed.evaluations[-1]["stage"] == whole.evaluations[-1]["stage"]
        for name, value in whole.weights[60].items():
            assert torch.equal(value, resumed.weights[60][name])


def test_the_rate_is_held_until_the_last_stage_also_in_a_run_that_goes_on(make_model, task):
    config = replace(CONFIG, schedule=ScheduleConfig("linear", hold_stages=True))
    whole = run(make_model(), task, config)
    begun = whole.evaluations[-1]["stage"]["starts"][-1]
    rates = {record["step"]: record["lr"] for record in whole.evaluations}
    assert all(rate == 1e-2 for step, rate in rates.items() if 0 < step <= begun)
    assert all(rate < 1e-2 for step, rate in rates.items() if step > begun + 1)
    resumed = run(make_model(seed=9), task, config, state=whole.states[begun + 5])
    assert [record["lr"] for record in resumed.evaluations] == [
        record["lr"] for record in whole.evaluations if record["step"] > begun + 5
    ]


def test_training_ends_so_many_steps_after_the_last_stage_began_also_in_a_run_that_goes_on(make_model, task):
    config = replace(CONFIG, schedule=ScheduleConfig("linear", hold_stages=True, fall_steps=7))
    whole = run(make_model(), task, config)
    begun = whole.evaluations[-1]["stage"]["starts"][-1]
    assert whole.evaluations[-1]["step"] == max(whole.weights) == begun + 7 < CONFIG.steps
    assert whole.states[begun + 7].tally.finished
    resumed = run(make_model(seed=9), task, config, state=whole.states[begun + 5])
    assert resumed.evaluations[-1]["step"] == begun + 7
    for name, value in whole.weights[begun + 7].items():
        assert torch.equal(value, resumed.weights[begun + 7][name])
