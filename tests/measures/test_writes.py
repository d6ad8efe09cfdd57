"""Which write wins, against an interpreter that is told which one to take; and which chain misleads."""

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.binding.longest_chain import fraction_of_longest, rival_roots, sample_longest_chain
from bindscope.measures.binding.writes import (
    OUTCOMES,
    SITUATIONS,
    RewrittenQuestions,
    attention_to_writes,
    classify_rewrites,
    fraction_of_writes,
    resolve,
    sample_rewritten,
)
from bindscope.model.config import ModelConfig
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, ask_programs, parse_program
from bindscope.tasks.binding.sampler import Grammar, sample_questions

TASK = BindingTask(lines=7, max_depth=4)


def rewritten_programs(n=300, seed=0):
    programs, queries = sample_questions(
        np.random.default_rng(seed), Grammar(max_depth=4, reassign=0.4), n, 7, balance="weights"
    )
    return programs, queries[:, 0]


def interpret(program, write):
    """The queried variable's digit if every name means its first or last write; None in a circle."""
    lines = {}
    for assignment in program.assignments:
        if write == "last" or assignment.variable not in lines:
            lines[assignment.variable] = assignment.source
    name, seen = program.query, set()
    while not name.isdigit():
        if name in seen:
            return None
        seen.add(name)
        name = lines[name]
    return int(name)


@pytest.mark.parametrize("write", ["first", "last"])
def test_names_resolve_as_an_interpreter_would(write):
    programs, queries = rewritten_programs()
    resolved = resolve(programs, queries, write)
    expected = [interpret(programs.program(row, queries[row]), write) for row in range(len(programs))]
    assert [None if digit < 0 else digit for digit in resolved] == expected
    assert any(digit is None for digit in expected) == (write == "last")  # only the last write can run in a circle


def test_a_situation_is_what_its_name_says():
    programs, queries = rewritten_programs(2000)
    situation, rival = classify_rewrites(programs, queries)
    assert set(situation) == {-1, 0, 1, 2}
    for row in np.flatnonzero(situation >= 0)[:200]:
        program = programs.program(row, queries[row])
        names = [assignment.variable for assignment in program.assignments]
        chain = [line - 1 for line in program.chain]  # the queried line first
        before = [names[line] in names[:line] for line in chain]
        after = [names[line] in names[line + 1 :] for line in chain]
        holds = [before[0], any(before[1:]), any(after[1:])]
        assert holds == [index == situation[row] for index in range(3)]
        assert rival[row] != program.answer


class Answering(torch.nn.Module):
    """A model whose answers are given, in the order of the rows."""

    def __init__(self, answers):
        super().__init__()
        self.answers, self.position = torch.as_tensor(answers), 0
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def forward(self, tokens, layout=None, at=None):
        rows = self.answers[self.position : self.position + len(tokens)]
        self.position += len(tokens)
        return torch.nn.functional.one_hot(rows.long(), 40).float()[:, None]


def test_fractions_of_a_model_with_one_heuristic_are_that_heuristic():
    questions = sample_rewritten(TASK, np.random.default_rng(1), 50)
    right = fraction_of_writes(Answering(questions.batch.targets[:, 0]), questions)
    assert (right.write_fraction.sel(outcome="right") == 1).all()
    rival = fraction_of_writes(Answering(questions.rival), questions)
    assert (rival.write_fraction.sel(outcome="rival") == 1).all()
    letters = fraction_of_writes(Answering(np.full(len(questions.rival), 20)), questions)
    assert list(letters.situation.values) == list(SITUATIONS)
    assert (letters.write_fraction.sel(outcome=OUTCOMES[-1]) == 1).all()
    assert (letters.n_write == 50).all()


def test_attention_to_both_writes_is_read_off_the_pattern():
    model = Transformer(ModelConfig(d_vocab=40, n_positions=15, n_layers=1, n_heads=2, d_model=16, d_head=8, d_mlp=16))
    batch = ask_programs([parse_program("a=1\nb=2\na=3\n#a:", reassignment=True)])
    questions = RewrittenQuestions(batch, np.array([SITUATIONS.index("query")]), np.array([1]))
    pattern = run(model, torch.from_numpy(batch.tokens), read=["L0.pattern"])["L0.pattern"][0].detach().numpy()
    found = attention_to_writes(model, questions).write_attention.sel(layer=0)
    np.testing.assert_allclose(found.sel(write="first"), pattern[:, 13, 2], rtol=1e-5)
    np.testing.assert_allclose(found.sel(write="last"), pattern[:, 13, 10], rtol=1e-5)


def test_too_few_rewritten_questions_are_refused():
    with pytest.raises(BindscopeError, match="use more lines"):
        sample_rewritten(BindingTask(lines=2, max_depth=2), np.random.default_rng(0), 50)


def test_the_longest_chain_is_the_one_with_most_lines():
    programs, queries = TASK.sample_questions(np.random.default_rng(0), 1000, 7)
    longest, another = rival_roots(programs, queries[:, 0], np.random.default_rng(1))
    told = np.flatnonzero((longest >= 0) & (another >= 0))
    assert len(told) > 10
    for row in told:
        sizes = [int((programs.root[row] == line).sum()) for line in range(7)]
        assert sizes[longest[row]] == max(sizes)
        assert sizes.count(max(sizes)) == 1
        values = {int(programs.value[row, line]) for line in (longest[row], another[row], queries[row, 0])}
        assert len(values) == 3  # the three digits tell the chains apart
        assert min(longest[row], another[row]) >= 2


def test_a_model_misled_by_the_longest_chain_is_found_out():
    questions = sample_longest_chain(BindingTask(lines=12), np.random.default_rng(0), 40)
    assert fraction_of_longest(Answering(questions.longest), questions) == (1.0, 0.0)
    assert fraction_of_longest(Answering(questions.another), questions) == (0.0, 1.0)
    assert fraction_of_longest(Answering(questions.batch.targets[:, 0]), questions) == (0.0, 0.0)
