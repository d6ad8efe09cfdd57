"""Pointer pairs: one reference and one constant differ, and three digits say what a patch moved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import (
    BindingTask,
    Program,
    ask_questions,
    named_positions,
    parse_program,
    point_elsewhere,
    references_of,
    sample_pointer_pairs,
)

TASK = BindingTask(lines=10, max_depth=4)


@pytest.mark.parametrize("changes", [{}, {"reassign": 0.3}, {"held_out": 0.1, "n_variables": 12}])
def test_base_pointed_and_source_answers_are_three_digits_and_two_tokens_differ(changes: dict) -> None:
    task = BindingTask(lines=10, max_depth=3, **changes)
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


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31 - 1))
def test_a_typed_program_pointed_elsewhere_has_three_answers(seed: int) -> None:
    programs, queries = TASK.sample_questions(np.random.default_rng(seed), 1, 10)
    program = Program.from_tokens(ask_questions(programs, queries).tokens[0])
    for reference in references_of(program.depth):
        found = point_elsewhere(program, reference)
        if found is None:
            assert reference != "query" or set(program.values) == {program.answer}
            continue
        source, held = found
        assert len({program.answer, held, source.answer}) == 3
        differs = [at for at, (one, other) in enumerate(zip(program.text, source.text)) if one != other]
        assert len(differs) == 2
        (name,) = (at for at in differs if source.text[at].isalpha())
        named = program.text[:name] + source.text[name] + program.text[name + 1 :]
        assert parse_program(named, reassignment=True).answer == held


def test_a_name_is_not_pointed_elsewhere_where_all_hold_the_same() -> None:
    assert point_elsewhere(parse_program("a=5\nb=5\nc=b\n#c:"), "query") is None
    with pytest.raises(BindscopeError, match="has the references rhs 2, query, not 'rhs 3'"):
        point_elsewhere(parse_program("a=5\nc=a\n#c:"), "rhs 3")
