"""Named positions of a chain stand where the program says."""

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import (
    BindingTask,
    Program,
    named_positions,
    pair_programs,
    parse_program,
    sample_root_pairs,
)


def test_places_of_sampled_pairs_are_those_of_the_parsed_programs():
    pairs = sample_root_pairs(BindingTask(lines=8, max_depth=4), np.random.default_rng(0), 60)
    positions = named_positions(pairs)
    for row, tokens in enumerate(pairs.base_tokens):
        program = Program.from_tokens(tokens)
        for hop, line in enumerate(reversed(program.chain), start=1):
            assert positions[f"lhs {hop}"][row] == 4 * (line - 1)
            assert positions[f"rhs {hop}"][row] == 4 * (line - 1) + 2
        assert all(positions[f"rhs {hop}"][row] == -1 for hop in range(program.depth + 1, 5))
        after = [line for line in program.distractor_lines if line > program.root_line]
        expected = min(after) if after else max(program.distractor_lines)
        assert positions["distractor"][row] == 4 * (expected - 1) + 2


def test_two_typed_programs_make_a_pair():
    base = parse_program("a=5\nb=a\nc=3\n#b:")
    pairs = pair_programs(base, base.with_root_constant(8))
    assert pairs.base_answers.tolist() == [5]
    assert pairs.counterfactual_answers.tolist() == [8]
    assert {name: int(column[0]) for name, column in named_positions(pairs).items()} == {
        "lhs 1": 0, "rhs 1": 2, "lhs 2": 4, "rhs 2": 6, "distractor": 10, "query": 13, "colon": 14,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("counterfactual", "words"), [("a=5\nb=a\n#b:", "same program"), ("a=5\nb=a\nc=1\n#b:", "2 and 3 lines")]
)
def test_programs_that_cannot_be_a_pair_are_refused(counterfactual, words):
    with pytest.raises(BindscopeError, match=words):
        pair_programs(parse_program("a=5\nb=a\n#b:"), parse_program(counterfactual))
