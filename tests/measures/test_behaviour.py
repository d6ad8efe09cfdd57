"""Behaviour of models whose heuristics are known, and attributes against the program's own reading."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.measures.binding.attributes import ATTRIBUTES, describe_questions
from bindscope.measures.binding.behaviour import behaviour_by
from bindscope.measures.binding.confusion import confusion
from bindscope.measures.binding.predictions import predict_answers
from bindscope.measures.evaluation import build_evaluator
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.binding import BindingTask, ask_programs, parse_program
from measures.answering import Answering, say_line_1, say_no_digit, solve

TASK = BindingTask(lines=8, max_depth=3)
SOLVER, HEURISTIC, MUTE = Answering(solve), Answering(say_line_1), Answering(say_no_digit)


def draw(n: int = 400, task: BindingTask = TASK, seed: int = 0):
    return task.sample_evaluation(np.random.default_rng(seed), n)["test"]


def test_attributes_are_what_the_program_itself_says():
    task = BindingTask(lines=9, max_depth=4, reassign=0.3)
    batch = draw(60, task)
    attributes = describe_questions(batch)
    assert list(attributes) == list(ATTRIBUTES)
    for row, tokens in enumerate(batch.tokens):
        program = task.parse("".join(task.vocabulary.decode(tokens)))
        found = {name: int(values[row]) for name, values in attributes.items()}
        constants = [a.source for a in program.assignments if a.source.isdigit()]
        names = [assignment.variable for assignment in program.assignments]
        assert found["depth"] == program.depth
        assert (found["query_line"], found["root_line"]) == (program.chain[0], program.chain[-1])
        assert found["distance"] == program.chain[0] - program.chain[-1]
        assert found["n_distractors"] == len(constants) - 1
        assert found["n_distinct"] == len(set(constants))
        assert found["n_equal"] == constants.count(str(program.answer))
        assert found["n_overwritten"] == len(names) - len(set(names))
        assert found["line_1_right"] == (program.assignments[0].source == str(program.answer))
        assert found["line_2_constant"] == program.assignments[1].source.isdigit()
        assert (found["answer"], found["lines"]) == (program.answer, 9)
        assert found["depth"] - 1 <= found["n_same_root"] < 9


@pytest.mark.parametrize("by", sorted(ATTRIBUTES))
def test_who_knows_the_answers_is_right_in_every_group_and_never_led_astray(by):
    table = behaviour_by(predict_answers(SOLVER, draw()), by)
    assert (table.accuracy == 1).all()
    assert (table.accuracy_low < 1).all()
    assert int(table.n.sum()) == 400
    np.testing.assert_allclose(table.prediction_source.sum("source"), 1)
    astray = table.followed_where_wrong.values
    assert np.nanmax(astray, initial=0) == 0
    assert np.array_equal(np.isnan(astray), table.n_rule_wrong.values == 0)


@pytest.mark.parametrize("by", ["depth", "root_line", "n_distractors"])
def test_who_says_line_1_is_right_as_often_as_line_1_is(by):
    table = behaviour_by(predict_answers(HEURISTIC, draw()), by)
    line_1 = table.sel(rule="line_1")
    assert (line_1.agreement == 1).all()
    np.testing.assert_allclose(table.accuracy, line_1.rule_accuracy)
    assert (table.prediction_source.sel(source="line 1") == 1).all()
    wrong = line_1.followed_where_wrong.values
    assert np.array_equal(np.nan_to_num(wrong, nan=-1), np.where(line_1.n_rule_wrong > 0, 1.0, -1.0))


def test_who_says_no_digit_follows_nothing():
    table = behaviour_by(predict_answers(MUTE, draw()), "depth")
    assert (table.prediction_source.sel(source="none") == 1).all()
    assert float(table.accuracy.max()) == float(table.agreement.max()) == 0


def test_groups_together_are_the_evaluator_s_numbers():
    mixed = Answering(lambda tokens: np.where(tokens[:, 0] % 2, solve(tokens), say_line_1(tokens)))
    split = build_evaluator(TASK, 300, seed=4)(mixed)["test"]
    predictions = predict_answers(mixed, draw(300, seed=4))
    for by in ("query_line", "answer"):
        table = behaviour_by(predictions, by)
        assert float((table.accuracy * table.n).sum() / 300) == pytest.approx(split["accuracy"], abs=1e-6)
        sources = (table.prediction_source * table.n).sum(by) / 300
        np.testing.assert_allclose(sources, split["prediction_source"], atol=1e-6)
        agreement = (table.agreement.fillna(0) * table.n_rule).sum(by) / table.n_rule.sum(by)
        np.testing.assert_allclose(agreement, [split["agreement"][rule] for rule in table.rule.values], atol=1e-6)


def test_selections_hold_only_programs_that_tell_heuristics_apart():
    predictions = predict_answers(HEURISTIC, draw())
    conflict, misleading = predictions.select("conflict"), predictions.select("misleading")
    assert 0 < len(conflict) < len(misleading) < len(predictions)
    rules = conflict.rules
    assert not np.any(rules["line_1"] == rules["positional"])
    assert not np.any((conflict.answers == rules["line_1"]) | (conflict.answers == rules["positional"]))
    assert conflict.attributes["depth"].min() >= 2  # at depth 1 the nearest constant is the answer
    assert not behaviour_by(misleading, "depth").accuracy.any()
    assert len(predictions.select("all")) == len(predictions)


def test_programs_of_several_lengths_are_told_apart():
    batches = [draw(40, BindingTask(lines=lines, max_depth=2)) for lines in (3, 6)]
    table = behaviour_by(predict_answers(HEURISTIC, batches), "lines")
    assert table.lines.values.tolist() == [3, 6]
    assert table.n.values.tolist() == [40, 40]
    assert table.sizes["source"] == 7


def test_the_confusion_of_a_solver_is_the_diagonal():
    table = confusion(predict_answers(SOLVER, draw()))
    np.testing.assert_array_equal(table.fraction.values[:, :10], np.eye(10))
    np.testing.assert_allclose(table.fraction.sum("prediction"), 1)
    np.testing.assert_allclose(table.line_fraction.sum("source").where(table.line_count.sum("source") > 0, 1), 1)
    assert int(table["count"].sum()) == int(table.line_count.sum()) == 400


def test_confusion_counts_what_was_given_for_what():
    batch = ask_programs([parse_program(text) for text in ("a=4\nb=7\n#b:", "a=4\nb=7\n#a:", "a=7\nb=3\n#a:")])
    table = confusion(predict_answers(HEURISTIC, batch))
    assert int(table["count"].sel(answer="7", prediction="4")) == 1
    assert int(table["count"].sel(answer="7", prediction="7")) == 1
    assert float(table.fraction.sel(answer="4", prediction="4")) == 1
    assert np.isnan(table.fraction.sel(answer="9")).all()  # 9 was never the answer
    assert int(table.line_count.sel(root_line=2, source="line 1")) == 1
    none = confusion(predict_answers(MUTE, batch))
    assert none["count"].sel(prediction="no digit").sum() == none.line_count.sel(source="none").sum() == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: behaviour_by(predict_answers(HEURISTIC, draw(20)), "dept"), "Did you mean 'depth'"),
        (lambda: predict_answers(HEURISTIC, []), "no question was given"),
        (lambda: predict_answers(HEURISTIC, draw(3)).select("odd"), "choose one of all"),
        (lambda: predict_answers(HEURISTIC, ask_programs([parse_program("a=4\n#a:")])).select("conflict"), "draw more"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(make, message):
    with pytest.raises(BindscopeError, match=message):
        make()


def test_other_families_have_no_depth_to_tell_apart():
    batch = next(iter(AssignAddTask().sample_evaluation(np.random.default_rng(0), 4).values()))
    with pytest.raises(BindscopeError, match="binding only"):
        predict_answers(Answering(lambda tokens: tokens[:, 0] % 10), batch)
