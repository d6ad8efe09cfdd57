"""The constructed transformer against a plain interpreter, and its documented circuit against interventions."""

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.model.run import run
from bindscope.tasks.task import Layout
from bindscope.theory.constructed import (
    CONSTRUCTED_CIRCUIT,
    DECOY,
    construct_dereferencer,
    constructed_circuit,
)

SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyz=\n#:"
LETTERS = SYMBOLS[10:36]


class Program:
    """A program drawn at random: each line takes a letter (perhaps a used one) and a digit or a readable letter."""

    def __init__(self, lines, query):
        self.lines, self.query = lines, query  # [(letter, source)], letter
        self.chain = self.chain_of(query, len(lines))  # line indices, root first

    @classmethod
    def draw(cls, rng, n_lines, max_depth, reassign=0.0):
        fresh, lines, depths = list(rng.permutation(list(LETTERS))), [], {}
        for _ in range(n_lines):
            readable = [letter for letter, depth in depths.items() if depth < max_depth]
            deepest = max(readable, key=depths.get, default=None)
            source = str(rng.choice([str(rng.integers(10)), *rng.choice(readable, 1), deepest]) if readable else 7)
            again = depths and (not fresh or rng.random() < reassign)
            letter = str(rng.choice(list(depths)) if again else fresh.pop())
            depths[letter] = 1 + depths.get(source, 0)
            lines.append((letter, source))
        return cls(lines, str(rng.choice(list(depths))))

    def chain_of(self, letter, before):
        line = max(i for i in range(before) if self.lines[i][0] == letter)
        source = self.lines[line][1]
        return [line] if source.isdigit() else [*self.chain_of(source, line), line]

    @property
    def answer(self):
        return int(self.lines[self.chain[0]][1])

    @property
    def prefix(self):
        return "".join(f"{letter}={source}\n" for letter, source in self.lines)

    @property
    def tokens(self):
        return encode(self.prefix + f"#{self.query}:")

    @property
    def places(self):
        n = 4 * len(self.lines)
        sides = {f"lhs {k}": 4 * i for k, i in enumerate(self.chain, 1)}
        sides |= {f"rhs {k}": 4 * i + 2 for k, i in enumerate(self.chain, 1)}
        return sides | {"query": n + 1, "colon": n + 2}

    def with_line(self, index, letter, source):
        return Program([*self.lines[:index], (letter, source), *self.lines[index + 1 :]], self.query)

    def with_root(self, digit):
        return self.with_line(self.chain[0], self.lines[self.chain[0]][0], str(digit))


def encode(text):
    return [SYMBOLS.index(character) for character in text]


def draw_of_depth(seed, depth, n_lines=7):
    rng = np.random.default_rng(seed)
    while True:
        program = Program.draw(rng, n_lines, 4)
        if len(program.chain) == depth:
            return program, program.with_root((program.answer + 1 + rng.integers(9)) % 10)


@torch.no_grad()
def answers(model, programs):
    return model(torch.tensor([program.tokens for program in programs]))[:, -1].argmax(-1).tolist()


@pytest.fixture(scope="module")
def model():
    return construct_dereferencer(lines=16, max_depth=4)


@pytest.mark.parametrize("reassign", [0.0, 0.4], ids=["each letter once", "letters assigned again"])
@pytest.mark.parametrize(
    ("lines", "max_depth", "lengths", "per_length"), [(16, 4, range(1, 17), 150), (26, 13, range(2, 27, 6), 50)]
)
def test_every_program_of_every_length_is_answered(lines, max_depth, lengths, per_length, reassign):
    model, rng = construct_dereferencer(lines, max_depth), np.random.default_rng(lines)
    seen = set()
    for n_lines in lengths:
        programs = [Program.draw(rng, n_lines, max_depth, reassign) for _ in range(per_length)]
        assert answers(model, programs) == [program.answer for program in programs]
        seen |= {len(program.chain) for program in programs}
    assert seen >= set(range(1, min(max_depth, 9) + 1))


def test_the_deepest_chain_that_was_promised_is_followed_and_no_deeper():
    for depth, followed in ((4, True), (5, False)):
        letters = LETTERS[:depth]
        program = Program([(letters[0], "7"), *zip(letters[1:], letters)], letters[-1])
        logits = construct_dereferencer(8, 4)(torch.tensor([program.tokens]))[0, -1]
        assert logits.any() == followed


def test_a_variable_assigned_from_itself_keeps_its_value(model):
    program = Program([("a", "3"), ("b", "8"), ("a", "a"), ("b", "a")], "b")
    assert answers(model, [program]) == [3]


def test_only_the_answer_has_a_logit(model):
    program = draw_of_depth(0, 3)[0]
    logits = model(torch.tensor([program.tokens]))[0, -1]
    assert torch.equal(logits.nonzero().flatten(), torch.tensor([program.answer]))


def test_queries_sharing_a_program_answer_as_they_do_alone(model):
    rng = np.random.default_rng(1)
    for n_lines in (2, 9, 16):
        program = Program.draw(rng, n_lines, 4)
        alone = [Program(program.lines, letter) for letter, _ in program.lines]
        blocks = "".join(f"#{each.query}:" for each in alone)
        start, n = 4 * n_lines, len(alone)
        layout = Layout(
            np.array([*range(start), *[start, start + 1, start + 2] * n]),
            np.array([0] * start + [k for k in range(1, n + 1) for _ in range(3)]),
        )
        logits = model(torch.tensor([encode(program.prefix + blocks)]), layout)
        together = logits[0, start + 2 :: 3].argmax(-1).tolist()
        assert together == [each.answer for each in alone] == answers(model, alone)


@torch.no_grad()
def swap(model, base, other, site):
    """The answer to ``base`` when ``site`` holds what it holds in ``other``."""
    tokens, source = torch.tensor([base.tokens]), run(model, torch.tensor([other.tokens]), read=[site])
    return run(model, tokens, write={site: source[site]}).logits[0, -1].argmax().item()


@torch.no_grad()
def swap_each_position(model, base, other, site):
    """The answers to ``base`` when ``site`` holds at one position what it holds in ``other``, for every position."""
    source = run(model, torch.tensor([other.tokens]), read=[site])[site][0]  # [position, d_model]
    tokens = torch.tensor([base.tokens]).expand(len(source), -1)  # one row for each patched position
    patched = torch.eye(len(source), dtype=torch.bool)[:, :, None]
    edit = {site: lambda old: torch.where(patched, source, old)}
    return run(model, tokens, write=edit, at=torch.tensor([len(source) - 1])).logits[:, 0].argmax(-1).tolist()


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_swapping_a_head_changes_the_answer_exactly_where_the_circuit_says(model, depth):
    base, other = draw_of_depth(depth, depth)
    moves_value = {
        (step.layer, step.head, base.places[step.target]) for step in constructed_circuit(depth) if step.layer > 0
    }
    found = set()
    for layer in range(model.config.n_layers):
        for head in range(model.config.n_heads):
            swapped = swap_each_position(model, base, other, f"L{layer}.H{head}.result")
            assert set(swapped) <= {base.answer, other.answer}
            found |= {(layer, head, position) for position, answer in enumerate(swapped) if answer == other.answer}
    assert found == moves_value


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_each_step_attends_from_its_target_to_its_source(model, depth):
    base, _ = draw_of_depth(10 + depth, depth)
    for step in constructed_circuit(depth):
        site = f"L{step.layer}.H{step.head}.pattern"
        pattern = run(model, torch.tensor([base.tokens]), read=[site])[site][0]
        assert pattern[base.places[step.target], base.places[step.source]] == 1


def test_the_first_layer_carries_which_variable_a_line_assigns(model):
    base = Program([("a", "3"), ("b", "8"), ("c", "a"), ("d", "b")], "c")
    other = Program([("a", "3"), ("b", "8"), ("d", "a"), ("c", "b")], "c")  # the last two lines trade their letters
    assert (base.answer, other.answer) == (3, 8)
    assert swap(model, base, other, "L0.H0.result@10,14") == 8
    assert swap(model, base, other, "L0.H0.result@2,6") == 3
    assert swap(model, base, other, "L0.H1.result") == 3


def test_the_decoy_holds_the_answer_that_nothing_reads(model):
    base, other = draw_of_depth(3, 2)
    site, last = f"H{DECOY}.result@{base.places['colon']}", model.config.n_layers - 1
    written = [run(model, torch.tensor([p.tokens]), read=[f"L{last}.{site}"])[f"L{last}.{site}"] for p in (base, other)]
    assert not torch.equal(*written)
    assert swap(model, base, other, f"L{last}.{site}") == base.answer


def test_the_listed_circuit_is_that_of_the_default_dereferencer(model):
    assert constructed_circuit(4) == CONSTRUCTED_CIRCUIT
    assert {step.layer for step in CONSTRUCTED_CIRCUIT} == set(range(model.config.n_layers))


def test_impossible_dereferencers_are_refused():
    with pytest.raises(BindscopeError, match="at least 1"):
        construct_dereferencer(lines=0)
    with pytest.raises(BindscopeError, match="depth 1 to 4"):
        constructed_circuit(5)
