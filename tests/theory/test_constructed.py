"""The constructed transformer against the task's own answers, and its documented circuit against interventions."""

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.model.run import run
from bindscope.tasks.binding import BindingTask, chain_positions, parse_program
from bindscope.theory.constructed import DECOY, construct_dereferencer, constructed_circuit


def draw_of_depth(seed, depth, n_lines=7):
    """A program whose query has this depth, and the same with another root constant."""
    rng = np.random.default_rng(seed)
    programs, queries = BindingTask(lines=n_lines).sample_questions(rng, 50, n_lines)
    row = int((np.take_along_axis(programs.depth, queries, 1)[:, 0] == depth).argmax())
    program = programs.program(row, int(queries[row, 0]))
    assert program.depth == depth
    return program, program.with_root_constant((program.answer + int(rng.integers(1, 10))) % 10)


def positions(program):
    """Where each position of the circuit stands in this program."""
    *links, query, colon = chain_positions(program)
    sides = {f"lhs {k}": position - 2 for k, position in enumerate(links, 1)}
    sides |= {f"rhs {k}": position for k, position in enumerate(links, 1)}
    return sides | {"query": query, "colon": colon}


@torch.no_grad()
def answers(model, batch):
    logits = model(torch.from_numpy(batch.tokens), batch.layout, at=torch.from_numpy(batch.target_positions))
    return logits.argmax(-1).numpy()  # [batch, target]


def logits_of(model, text):
    return model(torch.tensor([parse_program(text, reassignment=True).tokens]))[0, -1]


@pytest.fixture(scope="module")
def model():
    return construct_dereferencer(lines=16, max_depth=4)


@pytest.mark.parametrize("reassign", [0.0, 0.4], ids=["each letter once", "letters assigned again"])
@pytest.mark.parametrize(("lines", "max_depth", "n_programs"), [(16, 4, 3000), (26, 13, 300)])
def test_every_program_of_every_length_is_answered(lines, max_depth, n_programs, reassign):
    model, rng = construct_dereferencer(lines, max_depth), np.random.default_rng(lines)
    lengths, seen = range(2, lines + 1), set()
    for n_lines in lengths:
        task = BindingTask(n_lines, max_depth, p_constant=0.3, balance="weights", reassign=reassign)
        batch = task.sample_batch(rng, n_programs // len(lengths))
        assert (answers(model, batch) == batch.targets).all()
        seen |= set(batch.labels["depth"].flatten().tolist())
    assert seen >= set(range(1, min(max_depth, 9) + 1))


@pytest.mark.parametrize("reassign", [0.0, 0.4], ids=["each letter once", "letters assigned again"])
def test_queries_sharing_a_program_are_all_answered(model, reassign):
    rng = np.random.default_rng(1)
    for n_lines in (2, 9, 16):
        batch = BindingTask(n_lines, 4, queries=16, balance="none", reassign=reassign).sample_batch(rng, 40)
        assert batch.layout.n_blocks == 16
        assert (answers(model, batch) == batch.targets).all()


def test_chains_deeper_than_promised_get_no_answer(model):
    assert logits_of(model, "a=7\nb=a\nc=b\nd=c\n#d:").argmax() == 7
    assert not logits_of(model, "a=7\nb=a\nc=b\nd=c\ne=d\n#e:").any()


def test_a_variable_assigned_from_itself_keeps_its_value(model):
    assert logits_of(model, "a=3\nb=8\na=a\nb=a\n#b:").argmax() == 3


def test_only_the_answer_has_a_logit(model):
    program = draw_of_depth(0, 3)[0]
    assert logits_of(model, program.text).nonzero().flatten().tolist() == [program.answer]


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
        (step.layer, step.head, positions(base)[step.target]) for step in constructed_circuit(depth) if step.layer > 0
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
        assert pattern[positions(base)[step.target], positions(base)[step.source]] == 1


def test_the_first_layer_carries_which_variable_a_line_assigns(model):
    base = parse_program("a=3\nb=8\nc=a\nd=b\n#c:")
    other = parse_program("a=3\nb=8\nd=a\nc=b\n#c:")  # the last two lines trade their letters
    assert (base.answer, other.answer) == (3, 8)
    assert swap(model, base, other, "L0.H0.result@10,14") == 8
    assert swap(model, base, other, "L0.H0.result@2,6") == 3
    assert swap(model, base, other, "L0.H1.result") == 3


def test_the_decoy_holds_the_answer_that_nothing_reads(model):
    base, other = draw_of_depth(3, 2)
    site, last = f"H{DECOY}.result@{positions(base)['colon']}", model.config.n_layers - 1
    written = [run(model, torch.tensor([p.tokens]), read=[f"L{last}.{site}"])[f"L{last}.{site}"] for p in (base, other)]
    assert not torch.equal(*written)
    assert swap(model, base, other, f"L{last}.{site}") == base.answer


def test_the_listed_circuit_is_that_of_the_default_dereferencer(model):
    assert constructed_circuit(4) == constructed_circuit(depth=4, max_depth=4)
    assert {step.layer for step in constructed_circuit(4)} == set(range(model.config.n_layers))


def test_impossible_dereferencers_are_refused():
    with pytest.raises(BindscopeError, match="at least 1"):
        construct_dereferencer(lines=0)
    with pytest.raises(BindscopeError, match="depth 1 to 4"):
        constructed_circuit(5)
