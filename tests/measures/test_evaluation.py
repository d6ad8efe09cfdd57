"""The evaluator against models and outputs whose scores are known beforehand."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.evaluation import build_evaluator, read_answers
from bindscope.measures.scores import score_binding, score_halves, score_reals, score_tokens
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.binding import BindingTask, constants_by_line, parse_program
from bindscope.tasks.binding.programs import ask_programs

BINDING = BindingTask(lines=6, max_depth=3, held_out=0.1)
DIGITS = np.array([int(symbol) if symbol.isdigit() else -1 for symbol in BINDING.vocabulary.symbols])


class Answering(torch.nn.Module):
    """Not a transformer: gives the outputs that a function of the tokens asks for, at the asked positions."""

    def __init__(self, answer, d_out: int) -> None:
        super().__init__()
        self.weight, self.answer, self.d_out = torch.nn.Parameter(torch.zeros(1)), answer, d_out
        self.largest = 0

    def forward(self, tokens, layout=None, at=None):
        assert not self.training
        self.largest = max(self.largest, tokens.numel())
        chosen = torch.from_numpy(self.answer(tokens.numpy()))  # [batch]
        return 9.0 * torch.nn.functional.one_hot(chosen, self.d_out)[:, None].float()


def one_batch(*texts: str):
    batch = ask_programs([parse_program(text) for text in texts])
    return batch, constants_by_line(batch.tokens, int(batch.labels["lines"].max()))


def choose(*outputs: int) -> np.ndarray:
    return np.eye(len(DIGITS), dtype=np.float32)[list(outputs)]


def small_model(task, **changes) -> Transformer:
    config = ModelConfig(len(task.vocabulary), task.n_positions, d_out=task.d_out, n_layers=2, d_model=32, d_mlp=64)
    return Transformer(ModelConfig(**{**vars(config), **changes}))


def test_the_true_answers_score_one_everywhere_and_watch_every_depth():
    def solve(tokens):
        return np.array([BINDING.parse("".join(BINDING.vocabulary.decode(row))).answer for row in tokens])

    evaluation = build_evaluator(BINDING, 200, seed=3)(Answering(solve, BINDING.d_out))
    assert set(evaluation) == {"test", "held_out", "watched"}
    assert evaluation["watched"] == {"depth 1": 1.0, "depth 2": 1.0, "depth 3": 1.0}
    for split in (evaluation["test"], evaluation["held_out"]):
        assert split["accuracy"] == split["digit_share"] == split["mean_rank"] == 1.0
        assert set(split["accuracy_by_depth"]) == {1.0}
        assert split["agreement"] == split["rule_accuracy"]
        assert split["prediction_source"] == split["answer_source"]
        assert split["misleading"]["follows_chain"] == 1.0
        assert split["misleading"]["follows_early_lines"] == 0.0
        assert sum(split["n_by_depth"]) == sum(split["n_by_root_line"]) == split["n"] == 200


def test_a_model_that_says_line_1_agrees_with_that_rule_and_is_right_where_the_rule_is():
    evaluation = build_evaluator(BINDING, 300, seed=3)(Answering(lambda tokens: tokens[:, 2], BINDING.d_out))
    split = evaluation["test"]
    assert split["agreement"]["line_1"] == 1.0
    assert split["accuracy"] == split["rule_accuracy"]["line_1"]
    assert split["accuracy_by_root_line"][0] == 1.0
    assert split["prediction_source"] == [1.0, 0, 0, 0, 0, 0, 0]
    assert split["misleading"]["follows_chain"] == 0.0
    assert split["misleading"]["follows_early_lines"] == 1.0


def test_a_model_that_says_no_digit_comes_from_no_line():
    split = build_evaluator(BINDING, 50, seed=3)(Answering(lambda tokens: tokens[:, 0], BINDING.d_out))["test"]
    assert split["digit_share"] == split["accuracy"] == 0.0
    assert split["prediction_source"] == [0, 0, 0, 0, 0, 0, 1.0]
    assert set(split["agreement"].values()) == {0.0}


def test_a_prediction_comes_from_the_earliest_line_with_its_digit():
    batch, constants = one_batch("a=4\nb=7\nc=4\n#c:", "a=4\nb=7\nc=4\n#b:", "a=4\nb=7\nc=4\n#a:")
    scores = score_binding(choose(4, 7, 5), batch, constants, DIGITS)
    assert scores["prediction_source"] == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3], abs=1e-6)
    assert scores["answer_source"] == pytest.approx([2 / 3, 1 / 3, 0, 0], abs=1e-6)


def test_programs_mislead_when_neither_early_line_holds_the_answer():
    batch, constants = one_batch("a=4\nb=7\nc=1\n#c:", "a=4\nb=a\nc=1\n#c:", "a=4\nb=7\nc=7\n#c:", "a=4\nb=7\nc=1\n#c:")
    scores = score_binding(choose(1, 4, 4, 7), batch, constants, DIGITS)
    assert scores["misleading"]["n"] == 3
    assert scores["misleading"]["follows_chain"] == pytest.approx(1 / 3, abs=1e-6)
    assert scores["misleading"]["follows_early_lines"] == pytest.approx(2 / 3, abs=1e-6)


def test_a_rule_is_judged_only_where_it_says_something():
    batch, constants = one_batch("a=4\nb=a\n#b:", "a=4\nb=7\n#b:")
    scores = score_binding(choose(4, 7), batch, constants, DIGITS)
    assert (scores["rule_n"]["line_2"], scores["agreement"]["line_2"]) == (1, 1.0)
    assert (scores["rule_n"]["line_1"], scores["agreement"]["line_1"]) == (2, 0.5)


def test_what_was_never_asked_has_no_accuracy():
    batch, constants = one_batch("a=4\nb=7\nc=b\n#c:")
    scores = score_binding(choose(7), batch, constants, DIGITS)
    assert scores["accuracy_by_depth"] == [None, 1.0]
    assert scores["accuracy_by_root_line"] == [None, 1.0, None]


def test_loss_is_cross_entropy_and_rank_counts_what_stands_above():
    rng = np.random.default_rng(0)
    outputs, targets = rng.normal(size=(64, 12)).astype(np.float32), rng.integers(0, 12, 64)
    expected = torch.nn.functional.cross_entropy(torch.from_numpy(outputs), torch.from_numpy(targets))
    scores = score_tokens(outputs, targets)
    assert scores["loss"] == pytest.approx(expected.item(), abs=1e-5)
    assert score_tokens(np.array([[3.0, 2.0, 1.0]]), np.array([1]))["mean_rank"] == 2
    assert score_tokens(np.full((3, 4), 1e4, np.float32), np.array([0, 1, 1]))["loss"] == pytest.approx(
        np.log(4), abs=1e-5
    )


def test_chance_is_the_fraction_of_the_commonest_answer():
    assert score_tokens(np.zeros((4, 3)), np.array([2, 2, 1, 2]))["chance"] == 0.75


def test_real_labels_are_scored_by_square_error_and_nearest_label():
    scores = score_reals(np.array([0.9, 0.2, -1.0]), np.array([1.0, -1.0, -1.0], dtype=np.float32))
    assert scores["loss"] == pytest.approx((0.01 + 1.44 + 0) / 3, abs=1e-6)
    assert scores["accuracy"] == pytest.approx(2 / 3, abs=1e-6)
    assert scores["chance_loss"] == pytest.approx(8 / 9, abs=1e-6)
    assert score_reals(np.array([0.9]), np.array([1.0]))["accuracy"] is None


def test_held_out_sums_are_told_apart_by_their_swap():
    halves = score_halves(np.eye(3)[[0, 1, 1]], np.array([0, 1, 2]), np.array([True, False, False]))
    assert halves == {"swap_seen": {"n": 1, "accuracy": 1.0}, "both_held": {"n": 2, "accuracy": 0.5}}


def test_the_nine_splits_of_assign_and_add_are_scored_and_watched():
    task = AssignAddTask()
    evaluation = build_evaluator(task, 100, seed=0)(Answering(lambda tokens: task.solve(tokens), task.d_out))
    assert len(evaluation["watched"]) == 9
    assert set(evaluation["watched"].values()) == {1.0}
    for name, split in evaluation.items():
        if name.endswith("add"):
            assert split["swap_seen"]["n"] + split["both_held"]["n"] == 100
        else:
            assert "swap_seen" not in split


def test_an_evaluation_is_json_and_the_same_every_time():
    evaluate, again = (build_evaluator(BINDING, 64, seed=5) for _ in range(2))
    model = small_model(BINDING)
    first = evaluate(model)
    assert json.loads(json.dumps(first, allow_nan=False)) == first
    assert evaluate(model) == first == again(model)
    assert build_evaluator(BINDING, 64, seed=6)(model) != first


@pytest.mark.parametrize("training", [True, False])
def test_measuring_leaves_the_model_as_it_was(training):
    model = small_model(BINDING, dropout=0.5).train(training)
    before = [weight.clone() for weight in model.parameters()]
    evaluate = build_evaluator(BINDING, 32, seed=0)
    assert evaluate(model) == evaluate(model)  # dropout is off inside
    assert model.training is training
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    assert all(weight.grad is None for weight in model.parameters())


def test_the_mode_is_restored_even_when_the_model_fails():
    model = Answering(lambda tokens: 1 / 0, 4).train()
    with pytest.raises(ZeroDivisionError):
        build_evaluator(BINDING, 8, seed=0)(model)
    assert model.training


def test_a_bounded_part_at_a_time_gives_the_same_outputs():
    batch = BINDING.sample_evaluation(np.random.default_rng(0), 50)["test"]
    model = small_model(BINDING)
    whole = read_answers(model, batch)
    assert whole.shape == (50, BINDING.d_out)
    np.testing.assert_allclose(read_answers(model, batch, tokens_at_once=200), whole, atol=1e-5)
    watcher = Answering(lambda tokens: tokens[:, 2], BINDING.d_out)
    read_answers(watcher, batch, tokens_at_once=200)
    assert 0 < watcher.largest <= 200


def test_an_empty_evaluation_is_refused():
    with pytest.raises(BindscopeError, match="at least 1"):
        build_evaluator(BINDING, 0, seed=0)
