from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.training.config import CheckpointPlan, OptimizerConfig, ScheduleConfig, TrainingConfig
from bindscope.training.loop import train
from bindscope.training.loss import batch_loss
from bindscope.training.state import MemoryKeeper

CONFIG = TrainingConfig(
    steps=12,
    batch_size=8,
    optimizer=OptimizerConfig(lr=1e-2),
    schedule=ScheduleConfig("linear", warmup_steps=3),
    evaluate_every=5,
    save_every=1,
    checkpoints=CheckpointPlan(every=6, per_octave=1),
)


def watch_nothing(model) -> dict:
    return {"watched": {"depth 1": 0.0}}


def run(model, stream, config=CONFIG, **changes) -> MemoryKeeper:
    keeper = MemoryKeeper()
    train(model, stream, config, keeper=keeper, **{"evaluate": watch_nothing} | changes)
    return keeper


def assert_same_weights(one, other) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_going_on_from_any_state_is_the_run_never_interrupted(make_model, stream, optimizer, dropout):
    config = replace(CONFIG, optimizer=OptimizerConfig(optimizer, lr=1e-2))
    whole = run(make_model(dropout=dropout), stream, config, seed=3)
    for step in (0, 1, 5, 11, 12):
        resumed = run(make_model(seed=9, dropout=dropout), stream, config, seed=3, state=whole.states[step])
        if step < 12:
            assert_same_weights(whole.weights[12], resumed.weights[12])
        steps = [record["step"] for record in resumed.evaluations]
        assert steps == [s for s in (0, 5, 10, 12) if s > step]
        for record in resumed.evaluations:
            assert record["loss"] == next(r["loss"] for r in whole.evaluations if r["step"] == record["step"])


def test_an_early_evaluation_is_made_at_every_checkpoint_before_the_first_regular_one(make_model, stream):
    early = run(make_model(), stream, replace(CONFIG, evaluate_early=True))
    steps = [record["step"] for record in early.evaluations]
    assert steps == sorted({0, 5, 10, 12} | {step for step in early.weights if step < 5})
    assert len(steps) > 4
    usual = run(make_model(), stream)
    assert_same_weights(early.weights[12], usual.weights[12])


def test_dropout_depends_on_its_seed_and_leaves_the_global_generator_alone(make_model, stream):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = run(make_model(dropout=0.3), stream, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    same, other = run(make_model(dropout=0.3), stream, seed=1), run(make_model(dropout=0.3), stream, seed=2)
    assert_same_weights(one.weights[12], same.weights[12])
    assert not torch.equal(one.weights[12]["embed.weight"], other.weights[12]["embed.weight"])


@pytest.mark.parametrize("loss", ["answer", "all"])
@pytest.mark.parametrize("accumulate", [2, 3, 8])
def test_a_batch_in_parts_trains_the_same_weights_as_the_whole_and_is_never_there_at_once(
    make_model, stream, loss, accumulate
):
    whole = run(make_model().double(), stream, replace(CONFIG, loss=loss))
    model = make_model().double()
    rows: list[int] = []
    model.embed.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    parts = run(model, stream, replace(CONFIG, loss=loss, accumulate=accumulate))
    assert sum(rows) == CONFIG.steps * CONFIG.batch_size
    assert max(rows) == math.ceil(CONFIG.batch_size / accumulate)
    for record, other in zip(whole.evaluations[1:], parts.evaluations[1:], strict=True):
        assert record["loss"] == pytest.approx(other["loss"], abs=1e-12)
    for name, value in whole.weights[12].items():
        torch.testing.assert_close(value, parts.weights[12][name], rtol=0, atol=1e-9, msg=name)


def test_more_parts_than_examples_are_refused():
    with pytest.raises(BindscopeError, match=r"training\.accumulate: must not be more than the 8 examples .* got 9"):
        replace(CONFIG, accumulate=9)


def test_training_makes_the_loss_smaller(make_model, stream):
    kept = run(make_model(), stream, replace(CONFIG, steps=60, evaluate_every=20))
    losses = [record["loss"] for record in kept.evaluations]
    assert losses[0] is None
    assert losses[1] > losses[2] > losses[3]


def test_the_plan_says_which_weights_are_kept_and_step_0_is_the_untrained_model(make_model, stream):
    fresh = make_model().state_dict()
    kept = run(make_model(), stream)
    assert sorted(kept.weights) == [0, 1, 2, 4, 6, 12]
    assert_same_weights(kept.weights[0], fresh)
    assert not torch.equal(kept.weights[1]["unembed.weight"], fresh["unembed.weight"])


@pytest.mark.parametrize("save_every", [1, 5, 100])
def test_a_state_is_saved_at_the_start_at_each_interval_and_at_the_end(make_model, stream, save_every):
    kept = run(make_model(), stream, replace(CONFIG, save_every=save_every))
    assert sorted(kept.states) == sorted({*range(0, 12, save_every), 12})


def test_the_recorded_loss_is_the_mean_since_the_last_evaluation(make_model, stream):
    config = replace(CONFIG, evaluate_every=4)
    kept = run(make_model(), stream, config)
    model, losses = make_model(), []
    for step in range(4, 8):
        model.load_state_dict(kept.states[step].weights)
        losses.append(batch_loss(model, stream.batch(step)).item())
    assert kept.evaluations[2]["step"] == 8
    assert kept.evaluations[2]["loss"] == pytest.approx(np.mean(losses), rel=1e-6)


def test_clipping_bounds_the_gradient_and_leaves_short_ones_alone(make_model, stream):
    plain = replace(CONFIG, steps=3, clip=None)
    free, loose = run(make_model(), stream, plain), run(make_model(), stream, replace(plain, clip=1e6))
    for name, value in free.weights[3].items():
        torch.testing.assert_close(value, loose.weights[3][name], rtol=1e-6, atol=1e-7)
    tight = run(make_model(), stream, replace(plain, clip=1e-9))
    squares = [v for name, v in tight.states[1].optimizer.items() if name.endswith("exp_avg_sq")]
    gradient_norm = math.sqrt(sum(float(v.sum()) for v in squares) / (1 - 0.999))
    assert gradient_norm == pytest.approx(1e-9, rel=0.01)


def test_bf16_computes_in_half_but_keeps_whole_weights(make_model, stream):
    full = run(make_model(), stream)
    half = run(make_model(), stream, replace(CONFIG, precision="bf16"))
    assert all(value.dtype == torch.float32 for value in half.weights[12].values())
    a, b = (kept.evaluations[1]["loss"] for kept in (full, half))
    assert a != b
    assert a == pytest.approx(b, rel=0.02)


def scripted(values):
    """An evaluation that reports these accuracies one after the other."""
    remaining = iter(values)
    return lambda model: {"watched": [next(remaining), 1.0]}


def test_training_stops_at_the_second_evaluation_running_that_reaches_the_target(make_model, stream):
    config = replace(CONFIG, evaluate_every=2, stop_at=0.9)
    kept = run(make_model(), stream, config, evaluate=scripted([0.1, 0.95, 0.5, 0.9, 0.91, 0.0, 0.0]))
    assert [record["step"] for record in kept.evaluations] == [0, 2, 4, 6, 8]
    assert max(kept.weights) == 8
    assert kept.states[8].tally.finished
    assert not kept.states[7].tally.finished


def test_a_resumed_run_remembers_that_the_target_was_reached_once(make_model, stream):
    config = replace(CONFIG, evaluate_every=2, stop_at=0.9)
    whole = run(make_model(), stream, config, evaluate=scripted([0.1, 0.2, 0.95, 0.95]))
    assert max(whole.weights) == 6
    resumed = run(make_model(), stream, config, evaluate=scripted([0.95]), state=whole.states[5])
    assert max(resumed.weights) == 6
    again = run(make_model(), stream, config, evaluate=scripted([]), state=whole.states[6])
    assert not again.evaluations


def test_stopping_early_needs_something_to_watch(make_model, stream):
    with pytest.raises(BindscopeError, match="watches no accuracy"):
        run(make_model(), stream, replace(CONFIG, stop_at=0.9), evaluate=lambda model: {})


@pytest.mark.parametrize("after", [1, 7])
def test_a_loss_that_is_no_number_names_its_step_and_nothing_of_it_is_kept(make_model, stream, after):
    class Poisoned:
        def __init__(self, model):
            self.model = model

        def batch(self, step):
            if step == after - 1:
                self.model.embed.weight.data[:] = float("nan")
            return stream.batch(step)

    model, keeper = make_model(), MemoryKeeper()
    with pytest.raises(BindscopeError, match=rf"diverged at step {after}: the loss is nan"):
        train(model, Poisoned(model), replace(CONFIG, save_every=4), evaluate=watch_nothing, keeper=keeper)
    assert all(value.isfinite().all() for weights in keeper.weights.values() for value in weights.values())
    assert max(keeper.states) < after
    assert all(value.isfinite().all() for state in keeper.states.values() for value in state.weights.values())


def test_a_gradient_that_is_no_number_is_caught_before_it_is_saved(make_model, stream):
    model, keeper = make_model(), MemoryKeeper()
    model.embed.weight.register_hook(lambda gradient: gradient * float("inf"))
    with pytest.raises(BindscopeError, match=r"diverged at step 1: the norm of the gradient is"):
        train(model, stream, CONFIG, evaluate=watch_nothing, keeper=keeper)
    assert set(keeper.states) == {0}


def test_what_is_kept_of_a_step_comes_before_its_state(make_model, stream):
    order = []

    class Ordered(MemoryKeeper):
        def keep_weights(self, step, model):
            order.append((step, "weights"))

        def keep_evaluation(self, record):
            order.append((record["step"], "evaluation"))

        def keep_state(self, state):
            order.append((state.tally.step, "state"))

    train(make_model(), stream, CONFIG, evaluate=watch_nothing, keeper=Ordered())
    assert order[:3] == [(0, "weights"), (0, "evaluation"), (0, "state")]
    assert order[-3:] == [(12, "weights"), (12, "evaluation"), (12, "state")]


def test_evaluation_sees_the_model_without_dropout_and_training_with_it(make_model, stream):
    modes = []
    model = make_model(dropout=0.5)
    model.register_forward_pre_hook(lambda module, _: modes.append(module.training))
    seen = []
    run(model, stream, evaluate=lambda m: seen.append((m.training, torch.is_grad_enabled())) or {"watched": [0]})
    assert set(seen) == {(False, False)}
    assert modes == [True] * 12


def test_progress_tells_every_evaluation_and_ends_at_the_last_step(make_model, stream):
    glances = []
    run(make_model(), stream, observer=glances.append)
    assert [g.step for g in glances if g.evaluation is not None] == [0, 5, 10, 12]
    assert glances[0].loss is None
    assert glances[-1].fraction == 1
    assert glances[-1].seconds_left == 0
    assert [g.elapsed for g in glances] == sorted(g.elapsed for g in glances)
    assert all(g.examples_per_second > 0 for g in glances[1:])
