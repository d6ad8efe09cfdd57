"""Account pairs: every account names a line of its own, and the reference interpreter agrees about all of them."""

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import BindingTask, Program
from bindscope.tasks.binding.accounts import N_EARLY, sample_account_pairs


@pytest.mark.parametrize(
    ("task", "depth"),
    [
        (BindingTask(), 1),
        (BindingTask(), 2),
        (BindingTask(max_depth=3), 3),
        (BindingTask(lines=8, max_depth=1, p_constant=1.0), 1),
        (BindingTask(lines=12, max_depth=2, reassign=0.2), 1),
        (BindingTask(lines=10, max_depth=2, held_out=0.2), 2),
    ],
)
def test_the_interpreter_agrees_with_every_account(task: BindingTask, depth: int) -> None:
    drawn = sample_account_pairs(task, np.random.default_rng(0), 24, depth)
    sides = (drawn.pairs.base_tokens, drawn.pairs.counterfactual_tokens)
    programs = [[Program.from_tokens(row) for row in side] for side in sides]
    for pair, (base, source) in enumerate(zip(*programs)):
        lines = {name: int(getattr(drawn, name)[pair]) for name in ("positional", "lexical", "reflexive", "asked")}
        assert source.query_line == lines["positional"] + 1
        assert base.query_line == lines["asked"] + 1
        assert base.assignments[lines["lexical"]].variable == source.query
        assert base.values[lines["reflexive"]] == source.answer
        assert base.references == source.references  # one layout
        assert source.depth == depth
        assert source.values[:N_EARLY] == base.values[:N_EARLY]
        named = [base.values[line] for line in lines.values()]
        assert len({*named, *base.values[:N_EARLY]}) == len(named) + len(set(base.values[:N_EARLY]))
        assert tuple(drawn.values[pair]) == base.values


def test_pairs_keep_held_out_combinations_out() -> None:
    task = BindingTask(lines=10, max_depth=2, held_out=0.3)
    drawn = sample_account_pairs(task, np.random.default_rng(0), 40)
    for tokens in (*drawn.pairs.base_tokens, *drawn.pairs.counterfactual_tokens):
        program = Program.from_tokens(tokens)
        for line in program.assignments:
            if line.is_constant:
                assert not task.held_out_combinations[ord(line.variable) - ord("a"), int(line.source)]
        assert not task.held_out_combinations[ord(program.query) - ord("a"), program.answer]


def test_constants_differ_as_far_as_there_are_digits() -> None:
    drawn = sample_account_pairs(BindingTask(), np.random.default_rng(0), 60)
    for tokens in drawn.pairs.base_tokens:
        constants = [line.source for line in Program.from_tokens(tokens).assignments if line.is_constant]
        assert len(set(constants)) == min(len(constants), 10)


@pytest.mark.parametrize(
    ("task", "depth", "sentence"),
    [
        (BindingTask(lines=5), 1, "6 lines with 6 digits are needed"),
        (BindingTask(n_constants=5), 1, "6 lines with 6 digits are needed"),
        (BindingTask(), 5, "depth must lie between 1 and 4"),
    ],
)
def test_what_cannot_tell_the_accounts_apart_is_refused(task: BindingTask, depth: int, sentence: str) -> None:
    with pytest.raises(BindscopeError, match=sentence):
        sample_account_pairs(task, np.random.default_rng(0), 10, depth)
