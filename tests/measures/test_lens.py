"""The logit lens against the model's own outputs, a written-out reading, and a circuit that answers in its last layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.evaluation import read_answers
from bindscope.measures.lens import logit_lens
from bindscope.model.config import ModelConfig
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, ask_programs, constants_by_line, parse_program
from bindscope.theory.constructed import LOGIT, construct_dereferencer

TASK = BindingTask(lines=6, max_depth=2)


def draw(n: int = 80):
    return TASK.sample_evaluation(np.random.default_rng(0), n)["test"]


def small_model(seed: int = 0, **changes) -> Transformer:
    config = {"d_vocab": 40, "n_positions": TASK.n_positions, "n_layers": 2, "n_heads": 2, "d_model": 16, "d_head": 8}
    return Transformer(ModelConfig(**{**config, "d_mlp": 16, **changes}), torch.Generator().manual_seed(seed)).eval()


def test_the_constructed_answer_stands_alone_only_after_the_last_layer():
    lens = logit_lens([(0, construct_dereferencer(6, 2))], draw()).sel(step=0)
    assert lens.sizes["layer"] == 5  # before the first of four layers, and after each
    last, before = lens.isel(layer=-1), lens.isel(layer=slice(None, -1))
    assert before.top.max() == before.margin.max() == 0
    assert (before["rank"] == 20.5).all()  # all 40 outputs are equal
    assert last.margin == pytest.approx(LOGIT)
    assert last.top.values.tolist() == [1, 0, 0]
    assert last.probability.sel(candidate="answer") == pytest.approx(1, abs=1e-6)
    assert last["rank"].sel(candidate="answer") == 1
    assert str(last.site.values) == "L3.resid_post"


@pytest.mark.parametrize("changes", [{}, {"norm": "none", "positions": "learned"}, {"identity_vo": True}])
def test_every_layer_is_read_as_it_would_be_one_program_at_a_time(changes):
    batch, model = draw(), small_model(**changes)
    lens = logit_lens([(7, model)], batch).sel(step=7)
    answers, line_1 = batch.targets[:, 0], batch.labels["rule_line_1"][:, 0]
    rows: dict[str, list[float]] = {"answer": [], "line 1": [], "others": []}
    for tokens, answer, rule, constants in zip(batch.tokens, answers, line_1, constants_by_line(batch.tokens, 6)):
        others = sorted({int(c) for c in constants if c >= 0} - {int(answer), int(rule)})
        if answer == rule or not others:
            continue
        with torch.no_grad():
            stream = run(model, torch.from_numpy(tokens)[None], ["L1.resid_pre"])["L1.resid_pre"][:, -1]
            probability = model.to_logits(stream)[0].softmax(-1).numpy()
        rows["answer"].append(probability[answer])
        rows["line 1"].append(probability[rule])
        rows["others"].append(float(np.mean(probability[others])))
    assert lens.attrs["n"] == len(rows["answer"])
    assert lens.attrs["n_excluded"] == len(batch) - len(rows["answer"]) > 0
    for name, values in rows.items():
        assert float(lens.probability.sel(layer=1, candidate=name)) == pytest.approx(np.mean(values), abs=1e-6)


def test_the_last_layer_is_the_model_s_own_output():
    batch, model = draw(), small_model()
    told_apart = batch.take(_tells_apart(batch))
    lens = logit_lens([(0, model)], told_apart)
    assert lens.attrs["n_excluded"] == 0
    logits, rows = read_answers(model, told_apart), np.arange(len(told_apart))
    expected = logits[rows, told_apart.targets[:, 0]] - logits[rows, told_apart.labels["rule_line_1"][:, 0]]
    assert float(lens.margin.isel(step=0, layer=-1)) == pytest.approx(expected.mean(), abs=1e-5)
    np.testing.assert_allclose(
        lens.margin, lens.logit.sel(candidate="answer") - lens.logit.sel(candidate="line 1"), atol=1e-9
    )
    assert (lens.margin_low <= lens.margin).all()
    assert (lens.margin <= lens.margin_high).all()


def _tells_apart(batch):
    rows = zip(constants_by_line(batch.tokens, 6), batch.targets[:, 0], batch.labels["rule_line_1"][:, 0])
    return np.array([rule != answer and len({*row[row >= 0]} - {answer, rule}) > 0 for row, answer, rule in rows])


def test_other_positions_can_be_read_and_missing_ones_are_left_out():
    batch, model = draw(), small_model()
    colon = int(batch.target_positions[0])
    somewhere = np.where(np.arange(len(batch)) % 2, colon, -1)
    positions = {"colon": np.full(len(batch), colon), "half": somewhere, "nowhere": np.full(len(batch), -1)}
    lens = logit_lens([(0, model)], batch, positions=positions)
    assert lens.logit.dims == ("step", "layer", "position", "candidate")
    plain = logit_lens([(0, model)], batch)
    np.testing.assert_allclose(lens.logit.sel(position="colon"), plain.logit, atol=1e-6)
    assert np.isnan(lens.logit.sel(position="nowhere")).all()
    half = logit_lens([(0, model)], batch.take(slice(1, None, 2)))
    np.testing.assert_allclose(lens.logit.sel(position="half"), half.logit, atol=1e-6)


def test_checkpoints_may_come_one_at_a_time():
    batch, calls = draw(20), []
    models = {3: small_model(1), 9: small_model(2)}
    lens = logit_lens(iter(models.items()), batch, on_progress=lambda *call: calls.append(call))
    assert lens.step.values.tolist() == [3, 9]
    assert [done for done, _ in calls] == [1, 2]
    for step, model in models.items():
        alone = logit_lens([(step, model)], batch)
        np.testing.assert_allclose(lens.logit.sel(step=step), alone.logit.sel(step=step), atol=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: logit_lens([], draw(20)), "no checkpoint"),
        (lambda: logit_lens([(0, small_model())], draw(20), positions={}), "names none"),
        (lambda: logit_lens([(0, small_model())], draw(20), positions={"far": np.full(20, 99)}), "column 99 is beyond"),
        (lambda: logit_lens([(0, small_model())], ask_programs([parse_program("a=4\nb=a\n#b:")])), "draw more"),
    ],
)
def test_what_cannot_be_read_is_refused(make, message):
    with pytest.raises(BindscopeError, match=message):
        make()
