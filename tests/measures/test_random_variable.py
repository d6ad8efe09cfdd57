"""Answers held to those of a random variable: on answers that we write, the numbers are known."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.measures.binding.generalisation import _line_1_by_chance
from bindscope.measures.binding.predictions import describe_outputs
from bindscope.measures.binding.random_variable import compare_with_random_variable, count_holders, match_programs
from bindscope.tasks.binding import BindingTask, Program
from bindscope.tasks.binding.rendered import OUTPUT_OF_DIGIT

TASK = BindingTask(lines=16, max_depth=4)
BATCH = TASK.sample_evaluation(np.random.default_rng(0), 1500)["test"]
ANSWER, LINE_1 = BATCH.targets[:, 0], OUTPUT_OF_DIGIT[BATCH.labels["rule_line_1"][:, 0]]
PROGRAMS = [Program.from_tokens(tokens) for tokens in BATCH.tokens]


def values_of(program: Program) -> list[int]:
    """The final value of every variable, by the reference interpreter."""
    held: dict[str, int] = {}
    for assignment in program.assignments:
        held[assignment.variable] = int(assignment.source) if assignment.is_constant else held[assignment.source]
    return list(held.values())


def random_values(rng: np.random.Generator, n_sets: int = 1) -> np.ndarray:
    """What a model gives that answers with the value of a random variable."""
    return np.stack([OUTPUT_OF_DIGIT[[rng.choice(values_of(p)) for p in PROGRAMS]] for _ in range(n_sets)])


def compare(circuit_ablated: np.ndarray, heuristic_ablated: np.ndarray = ANSWER[None]) -> dict[str, tuple[float, ...]]:
    answers = {
        "intact": ANSWER[None],
        "circuit ablated": circuit_ablated,
        "heuristic ablated": heuristic_ablated,
        "random ablated": ANSWER[None],
    }
    found = compare_with_random_variable(answers, BATCH, np.random.default_rng(1))
    rows = zip(found.difference.values, found.difference_low.values, found.difference_high.values)
    return dict(zip(found.comparison.values.tolist(), rows))


def test_holders_are_counted_as_the_interpreter_does() -> None:
    digits = BATCH.labels["rule_line_1"][:, 0]
    expected = [np.mean([value == digit for value in values_of(p)]) for p, digit in zip(PROGRAMS, digits)]
    np.testing.assert_allclose(count_holders(BATCH, digits), expected)


def test_the_value_of_a_random_variable_has_a_surplus_of_its_own_and_nothing_beyond_it() -> None:
    found = compare(random_values(np.random.default_rng(2)))
    assert found["surplus"][0] > 0.15  # where line 1 is right more variables hold the answer
    for name in ("surplus beyond it", "line 1 beyond random variable"):
        value, low, high = found[name]
        assert low < 0 < high, name
        assert abs(value) < 0.05


def test_answering_with_line_1_is_far_beyond_a_random_variable() -> None:
    found = compare(LINE_1[None])
    wrong = LINE_1 != ANSWER
    holders = count_holders(BATCH, BATCH.labels["rule_line_1"][:, 0])
    assert found["surplus"] == pytest.approx((1, 1, 1))
    assert found["line 1 beyond random variable"][0] == pytest.approx(1 - holders[wrong].mean())
    assert found["surplus beyond it"][1] > 0.3


def test_a_heuristic_serves_when_its_loss_costs_answers_where_line_1_is_right() -> None:
    right = LINE_1 == ANSWER
    lost = np.where(right, OUTPUT_OF_DIGIT[0], ANSWER)  # what line 1 got right becomes a constant digit
    found = compare(ANSWER[None], lost[None])
    assert found["heuristic serves"][0] == pytest.approx(0.9, abs=0.05)
    assert found["random heads serve"] == pytest.approx((0, 0, 0))


def test_matched_groups_have_as_many_holders() -> None:
    right = LINE_1 == ANSWER
    holders = count_holders(BATCH, BATCH.labels["rule_line_1"][:, 0])
    weights, kept = match_programs(right, holders)
    assert weights.sum(1) == pytest.approx([kept, kept])
    assert holders[right].mean() - holders[~right].mean() > 0.1  # apart before …
    assert np.ptp((weights @ holders) / weights.sum(1)) < 1e-9  # … and equal after
    assert not (weights[0] * weights[1]).any()


def test_chance_of_line_1_among_mistakes_is_that_of_variables_without_the_answer() -> None:
    rng = np.random.default_rng(3)
    outputs = np.zeros((len(ANSWER), len(TASK.vocabulary.symbols)), np.float32)
    outputs[np.arange(len(ANSWER)), OUTPUT_OF_DIGIT[rng.integers(0, 10, len(ANSWER))]] = 1
    predictions = describe_outputs(outputs, BATCH)
    expected = []
    for program, line_1, answer, said in zip(
        PROGRAMS, predictions.rules["line_1"], predictions.answers, predictions.predicted
    ):
        if said != answer != line_1:
            others = [value for value in values_of(program) if value != answer]
            expected.append(np.mean([value == line_1 for value in others]))
    assert _line_1_by_chance(predictions, BATCH) == pytest.approx(np.mean(expected))
