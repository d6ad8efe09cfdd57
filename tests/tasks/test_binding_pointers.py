"""Pointer pairs: one reference and one constant differ, and three digits say what a patch moved."""

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import BindingTask, named_positions, references_of, sample_pointer_pairs


@pytest.mark.parametrize("settings", [{}, {"reassign": 0.3}, {"held_out": 0.1, "n_variables": 12}])
def test_base_pointed_and_source_answers_are_three_digits_and_two_tokens_differ(settings: dict) -> None:
    task = BindingTask(lines=10, max_depth=3, **settings)
    for depth in (1, 2, 3):
        for reference in references_of(depth):
            drawn = sample_pointer_pairs(task, np.random.default_rng(depth), 30, depth, reference)
            pairs = drawn.pairs
            digits = np.stack([pairs.base_answers, drawn.pointed_answers, pairs.counterfactual_answers])
            assert all(len(set(column)) == 3 for column in digits.T)
            differs = pairs.base_tokens != pairs.counterfactual_tokens
            assert (differs.sum(1) == 2).all()
            assert differs[np.arange(30), named_positions(pairs)[reference]].all()
            for side in (pairs.base, pairs.counterfactual):
                assert (side.labels["depth"] == depth).all()
                assert (side.labels["root_line"] >= 3).all()


def test_the_pointed_answer_is_what_the_base_program_holds_for_the_other_name() -> None:
    task = BindingTask(lines=8, max_depth=3)
    drawn = sample_pointer_pairs(task, np.random.default_rng(0), 40, 2, "query")
    asked = drawn.pairs.base_tokens.copy()
    asked[:, drawn.pairs.query_position] = drawn.pairs.counterfactual_tokens[:, drawn.pairs.query_position]
    from bindscope.tasks.binding import ask_questions, tokens_to_programs

    np.testing.assert_array_equal(ask_questions(*tokens_to_programs(asked)).targets[:, 0], drawn.pointed_answers)


def test_what_cannot_be_drawn_is_refused_in_words() -> None:
    task = BindingTask(lines=8, max_depth=3)
    rng = np.random.default_rng(0)
    with pytest.raises(BindscopeError, match="depth must lie between 1 and 3"):
        sample_pointer_pairs(task, rng, 4, 4)
    with pytest.raises(BindscopeError, match="not 'rhs 3'"):
        sample_pointer_pairs(task, rng, 4, 2, "rhs 3")
    with pytest.raises(BindscopeError, match="need 3 constants"):
        sample_pointer_pairs(BindingTask(lines=8, n_constants=2), rng, 4, 1)
