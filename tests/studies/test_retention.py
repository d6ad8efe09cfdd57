"""Retention on models whose circuit and heuristics are written by us."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

import bindscope
from bindscope.errors import BindscopeError
from bindscope.measures.binding.retention import CONDITIONS, measure_retention
from bindscope.model.run import run
from bindscope.runs.directory import Run
from bindscope.studies.binding.representation.measure import retention_steps
from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset
from bindscope.tasks.binding import BindingTask
from bindscope.theory.constructed import construct_dereferencer

TASK = BindingTask(lines=5, max_depth=2)
BATCH = TASK.sample_evaluation(np.random.default_rng(0), 120)["test"]
WRONG = BATCH.targets[:, 0] != BATCH.labels["rule_line_1"][:, 0]
SHIPPED = Path(bindscope.__file__).parent / "shipped"


def heuristic_model() -> torch.nn.Module:
    """The constructed model with a decoy that answers: its last layer's second head copies line 1's constant to the
    colon, and its mechanism no longer writes anything there."""
    model = copy.deepcopy(construct_dereferencer(5, 2))
    attention = model.layers[-1].attention
    config = attention.config
    q, k, v = attention.qkv.weight.data.view(3, config.n_heads, config.d_head, config.d_model)[:, 1]
    out = attention.out.weight.data.view(config.d_model, config.n_heads, config.d_head)
    mechanism = out[:, 0].clone()
    out[:, 0] = 0
    out[:, 1] = mechanism  # value → answer
    v.copy_(attention.qkv.weight.data.view(3, config.n_heads, config.d_head, config.d_model)[2, 0])
    position = slice(40, 40 + config.n_positions)  # the residual stream's position subspace
    q.zero_()
    k.zero_()
    q[0, position] = 120.0 * config.d_head**0.5  # wherever it stands …
    k[0, 40 + 2] = 1.0  # … it looks at line 1's right-hand side
    return model


@pytest.fixture(scope="module")
def retained():
    calls: list[tuple[int, int]] = []
    models = (100, heuristic_model()), (900, construct_dereferencer(5, 2))
    dataset = measure_retention(
        *models, BATCH, np.random.default_rng(0), size=1, n_random=2, on_progress=lambda *call: calls.append(call)
    )
    return dataset, calls


def test_the_models_are_what_they_are_meant_to_be():
    with torch.no_grad():
        said = run(heuristic_model(), torch.from_numpy(BATCH.tokens)).logits[:, -1].argmax(-1).numpy()
    np.testing.assert_array_equal(said, BATCH.labels["rule_line_1"][:, 0])


def test_intact_the_heuristic_is_right_where_line_1_is_and_the_circuit_always(retained):
    intact = retained[0].sel(condition="intact")
    assert intact.accuracy.sel(step=100).values.tolist() == [1, 0]
    assert intact.line_1.sel(step=100).values.tolist() == [1, 1]
    assert intact.accuracy.sel(step=900).values.tolist() == [1, 1]
    assert intact.line_1.sel(step=900).values.tolist() == [1, 0]
    assert retained[0].n.values.tolist() == [int((~WRONG[1::2]).sum()), int(WRONG[1::2].sum())]


def test_the_sets_are_the_heads_that_do_it(retained):
    dataset = retained[0]
    assert dataset.attrs["heuristic"] == "L3.H1"
    assert dataset.attrs["circuit"].endswith(".H0")  # one of the mechanism's heads, never the decoy
    assert int(dataset.in_circuit.sum()) == int(dataset.in_heuristic.sum()) == 1
    assert dataset.attrs["shared"] == "none"
    decoys = dataset.accuracy_drop.sel(step=900, head=1)
    assert not decoys.any()


def test_each_set_hurts_the_model_that_uses_it_and_not_the_other(retained):
    accuracy = retained[0].accuracy
    assert accuracy.sel(step=900, condition="heuristic ablated").values.tolist() == [1, 1]  # there it is a decoy
    assert accuracy.sel(step=900, condition="circuit ablated", group="line 1 wrong") < 0.6
    assert accuracy.sel(step=100, condition="heuristic ablated", group="line 1 right") < 0.5
    assert (accuracy.sel(condition="both ablated") <= accuracy.sel(condition="intact")).all()
    assert accuracy.dims == ("step", "condition", "group")
    assert accuracy.condition.values.tolist() == list(CONDITIONS)


def test_a_head_s_drop_is_that_of_a_run_without_it(retained):
    half, model = BATCH.take(slice(0, None, 2)), construct_dereferencer(5, 2)
    with torch.no_grad():
        every, tokens = (torch.from_numpy(batch.tokens) for batch in (BATCH, half))
        mean = run(model, every, ["L3.H0.result"])["L3.H0.result"].mean(0)
        logits = run(model, tokens, write={"L3.H0.result": mean.expand(len(half), *mean.shape)}).logits[:, -1]
        intact = run(model, tokens).logits[:, -1]
    answers = torch.from_numpy(half.targets)
    falls = (intact.log_softmax(-1) - logits.log_softmax(-1)).gather(1, answers)[:, 0].numpy()
    drop = retained[0].log_probability_drop.sel(step=900, group="line 1 wrong", layer=3, head=0)
    assert float(drop) == pytest.approx(falls[WRONG[0::2]].mean(), rel=1e-5)


def test_the_answer_is_written_by_the_head_that_ought_to(retained):
    parts = retained[0].contribution.sel(group="line 1 wrong")
    assert float(parts.sel(step=900, candidate="answer", component="L3.H0")) == pytest.approx(18, abs=1e-3)
    assert float(parts.sel(step=100, candidate="line 1", component="L3.H1")) == pytest.approx(18, abs=1e-3)
    assert float(parts.sel(step=100, candidate="answer", component="L3.H1")) < 0


def test_progress_reaches_its_end(retained):
    assert retained[1][-1][0] == retained[1][-1][1]


def test_the_checkpoints_of_a_run_are_one_of_its_heuristic_phase_and_its_last():
    shipped = Run.open(SHIPPED / "binding-laptop")
    before, after = retention_steps(shipped)
    phase = next(
        p
        for p in phases_of(trajectory_dataset(shipped.metrics, family=shipped.config.task.family))
        if p.name == "heuristic"
    )
    assert phase.first_step <= before <= phase.last_step
    assert after == shipped.steps[-1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"size": 3}, "with 8 heads give 1 to 2"),
        ({"n_random": 1}, "n_random must be at least 2"),
        ({"after": (100, construct_dereferencer(5, 2))}, "step 100 was given twice"),
        ({"after": (900, construct_dereferencer(5, 1))}, "different heads"),
        ({"batch": BATCH.take(WRONG)}, "too few to have line 1 both right and wrong"),
    ],
)
def test_what_cannot_be_compared_is_refused(changes, message):
    model = construct_dereferencer(5, 2)
    arguments = {"before": (100, model), "after": (900, model), "batch": BATCH, "rng": np.random.default_rng(0)}
    with pytest.raises(BindscopeError, match=message):
        measure_retention(**{**arguments, **changes})
