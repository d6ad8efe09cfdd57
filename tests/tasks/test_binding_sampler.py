"""Sampler, parser and interpreter say the same of every program, and programs are drawn by the rule."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.tasks.binding import (
    RULES,
    BindingTask,
    Grammar,
    Program,
    ask_programs,
    ask_questions,
    chain_positions,
    constants_by_line,
    parse_program,
    sample_programs,
    sample_questions,
    tokens_to_programs,
)
from bindscope.tasks.binding.programs import trace_query_chains

N_PROGRAMS = 20_000


def load_loop_sampler() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "binding_loop.py"
    spec = importlib.util.spec_from_file_location("binding_loop", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["binding_loop"] = module
    spec.loader.exec_module(module)
    return module


loop_sampler = load_loop_sampler()


@st.composite
def tasks(draw: st.DrawFn) -> BindingTask:
    """Any settings that can be sampled quickly."""
    reassign = draw(st.sampled_from([0.0, 0.3]))
    n_variables = draw(st.integers(3, 26))
    return BindingTask(
        lines=draw(st.integers(2, 30 if reassign else n_variables)),
        max_depth=draw(st.integers(1, 5)),
        n_variables=n_variables,
        n_constants=draw(st.integers(2, 10)),
        p_constant=draw(st.sampled_from([0.2, 0.5, 0.8])),
        exponent=draw(st.sampled_from([0.0, 1.0, 3.0])),
        queries=draw(st.integers(1, 4)),
        balance=draw(st.sampled_from(["weights", "none"])),
        held_out=draw(st.sampled_from([0.0, 0.1])),
        reassign=reassign,
    )


seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=60)
@given(tasks(), seeds)
def test_every_sampled_program_parses_to_its_own_structure(task: BindingTask, seed: int) -> None:
    programs, queries = task.sample_questions(np.random.default_rng(seed), 6, task.lines)
    batch = ask_questions(programs, queries)
    for row, line in enumerate(queries[:, 0]):
        text = "".join(task.vocabulary.decode(batch.tokens[row]))
        program = task.parse(text)
        assert program == programs.program(row, line)
        assert program.values == tuple(programs.value[row])
        assert [reference or 0 for reference in program.references] == list(programs.reference[row] + 1)
        assert [len(program.chain_of(n)) for n in range(1, task.lines + 1)] == list(programs.depth[row])
        assert [program.chain_of(n)[-1] for n in range(1, task.lines + 1)] == list(programs.root[row] + 1)
        labels = {name: values[row, 0] for name, values in batch.labels.items()}
        assert program.answer == batch.targets[row, 0]
        assert (program.depth, program.root_line) == (labels["depth"], labels["root_line"])
        assert program.depth <= task.max_depth


@settings(max_examples=40)
@given(tasks(), seeds)
def test_tokens_lead_back_to_the_arrays_they_came_from(task: BindingTask, seed: int) -> None:
    programs, queries = task.sample_questions(np.random.default_rng(seed), 5, task.lines, task.queries)
    read, read_queries = tokens_to_programs(ask_questions(programs, queries).tokens, task.queries)
    np.testing.assert_array_equal(read_queries, queries)
    for name in vars(programs):
        np.testing.assert_array_equal(getattr(read, name), getattr(programs, name), err_msg=name)
        assert getattr(read, name).dtype == getattr(programs, name).dtype


@settings(max_examples=40)
@given(tasks(), seeds)
def test_chains_of_arrays_are_the_chains_of_the_programs(task: BindingTask, seed: int) -> None:
    programs, queries = task.sample_questions(np.random.default_rng(seed), 5, task.lines)
    chains = trace_query_chains(programs, queries[:, 0], task.max_depth)
    for row, line in enumerate(queries[:, 0]):
        program = programs.program(row, line)
        found = [index for index in chains[row] if index >= 0]
        assert tuple(index + 1 for index in reversed(found)) == program.chain
        assert tuple(4 * index + 2 for index in found) == chain_positions(program)[:-2]


@settings(max_examples=40)
@given(tasks(), seeds)
def test_a_shared_prefix_batch_holds_the_separate_sequences(task: BindingTask, seed: int) -> None:
    batch = task.sample_batch(np.random.default_rng(seed), 3)
    layout = batch.layout
    blocks = np.ones_like(layout.position_ids) if layout.blocks is None else layout.blocks
    assert layout.position_ids.max() + 1 == task.n_positions
    for query in range(task.queries):
        columns = np.flatnonzero((blocks == 0) | (blocks == query + 1))
        np.testing.assert_array_equal(layout.position_ids[columns], np.arange(task.n_positions))
        assert columns[-1] == batch.target_positions[query]
        separate = ask_programs([Program.from_tokens(row) for row in batch.tokens[:, columns]])
        np.testing.assert_array_equal(separate.tokens, batch.tokens[:, columns])
        np.testing.assert_array_equal(separate.targets[:, 0], batch.targets[:, query])
        for name, values in batch.labels.items():
            np.testing.assert_array_equal(separate.labels[name][:, 0], values[:, query], err_msg=name)


@settings(max_examples=40)
@given(seeds, st.integers(2, 20), st.integers(1, 5))
def test_labels_equal_those_found_by_walking_over_the_lines(seed: int, n_lines: int, max_depth: int) -> None:
    lines, query = loop_sampler.sample_question(random.Random(seed), n_lines, min(max_depth, n_lines), 0.5, 1.0)
    tokens = np.array([loop_sampler.encode_question(lines, query)])
    batch = ask_questions(*tokens_to_programs(tokens))
    assert {name: values[0, 0] for name, values in batch.labels.items()} == loop_sampler.label_question(lines, query)
    assert batch.targets[0, 0] == query.value
    assert set(RULES) <= set(batch.labels)


def test_rules_say_what_their_names_say() -> None:
    batch = ask_programs([parse_program("a=5\nb=a\nc=3\nd=b\ne=8\n#d:")])
    labels = {name: int(values[0, 0]) for name, values in batch.labels.items()}
    assert labels == {
        "depth": 3,
        "root_line": 1,
        "n_chains": 3,
        "lines": 5,
        "rule_line_1": 5,
        "rule_line_2": -1,
        "rule_first_constant": 5,
        "rule_most_recent": 8,
        "rule_positional": 3,
    }
    np.testing.assert_array_equal(constants_by_line(batch.tokens, 5), [[5, -1, 3, -1, 8]])
    assert ask_programs([parse_program("a=5\n#a:")]).labels["rule_line_2"] == -1


def test_a_batch_is_a_pure_function_of_its_generator() -> None:
    task = BindingTask(lines=8, queries=3, min_lines=2, balance="weights", held_out=0.1, reassign=0.2)
    first, second = (task.sample_batch(np.random.default_rng([3, 14]), 16) for _ in range(2))
    np.testing.assert_array_equal(first.tokens, second.tokens)
    np.testing.assert_array_equal(first.targets, second.targets)


@pytest.mark.parametrize(("p_constant", "exponent"), [(0.3, 3.0), (0.5, 3.0), (0.5, 0.0)])
def test_base_rates_equal_those_of_the_plain_loop(p_constant: float, exponent: float) -> None:
    task = BindingTask(p_constant=p_constant, exponent=exponent)
    batch = task.sample_batch(np.random.default_rng(0), N_PROGRAMS)
    rng, n_loop = random.Random(1), 3000
    questions = [loop_sampler.sample_question(rng, 16, 4, p_constant, exponent) for _ in range(n_loop)]
    labels = [loop_sampler.label_question(lines, query) for lines, query in questions]
    answers = np.array([query.value for _, query in questions])
    for name in ("rule_line_1", "rule_line_2", "rule_most_recent", "rule_positional"):
        by_loop = np.mean([label[name] for label in labels] == answers)
        assert_same_fraction(np.mean(batch.labels[name] == batch.targets), by_loop, n_loop, name)
    for line in (1, 2, 3):
        by_loop = np.mean([label["root_line"] == line for label in labels])
        assert_same_fraction(np.mean(batch.labels["root_line"] == line), by_loop, n_loop, f"root on line {line}")
    n_chains = np.array([label["n_chains"] for label in labels])
    assert batch.labels["n_chains"].mean() == pytest.approx(n_chains.mean(), abs=4 * n_chains.std() / n_loop**0.5)


def assert_same_fraction(ours: float, theirs: float, n_loop: int, what: str) -> None:
    error = (theirs * (1 - theirs) * (1 / n_loop + 1 / N_PROGRAMS)) ** 0.5
    assert abs(ours - theirs) < 4 * error, f"{what}: {ours:.3f} and {theirs:.3f}, standard error {error:.4f}"


# p(const), exponent, answer = line-1 constant, root on line 1, root on line 2: the table in the notes on the study. Its
# rates are rounded and partly given as ranges, and they are met exactly by neither way of balancing the queried depth:
# the uniform rows lie between the two, the cubic rows up to 2.5 points above both, as they do when chains that are not
# queried may grow past the queried depths. The plain loop above is the sharp test of the rule.
TABLE = [
    (0.3, 3.0, 0.67, 0.64, 0.11),
    (0.4, 3.0, 0.62, 0.58, 0.13),
    (0.5, 3.0, 0.56, 0.51, 0.15),
    (0.3, 0.0, 0.58, 0.53, 0.09),
    (0.5, 0.0, 0.46, 0.40, 0.12),
]


@pytest.mark.parametrize(("p_constant", "exponent", "line_1_rule", "root_1", "root_2"), TABLE)
def test_base_rates_lie_near_the_published_reconstruction(
    p_constant: float, exponent: float, line_1_rule: float, root_1: float, root_2: float
) -> None:
    rates = []
    for balance in ("rejection", "weights"):
        task = BindingTask(p_constant=p_constant, exponent=exponent, balance=balance)  # type: ignore[arg-type]
        batch = task.sample_batch(np.random.default_rng(2), N_PROGRAMS)
        roots = batch.labels["root_line"]
        rates.append([np.mean(batch.labels["rule_line_1"] == batch.targets), np.mean(roots == 1), np.mean(roots == 2)])
    low, high = np.min(rates, axis=0), np.max(rates, axis=0)
    expected = np.array([line_1_rule, root_1, root_2])
    assert (low - 0.03 < expected).all()
    assert (expected < high + 0.03).all()


def test_the_line_1_rule_works_for_deep_chains_and_fails_for_constants() -> None:
    batch = BindingTask().sample_batch(np.random.default_rng(3), N_PROGRAMS)
    follows, depth = batch.labels["rule_line_1"] == batch.targets, batch.labels["depth"]
    assert follows[depth == 1].mean() == pytest.approx(0.22, abs=0.02)
    assert follows[depth == 4].mean() == pytest.approx(0.71, abs=0.02)


@pytest.mark.parametrize("queries", [1, 5])
def test_rejection_balances_the_queried_depth(queries: int) -> None:
    batch = BindingTask(queries=queries).sample_batch(np.random.default_rng(4), 4000)
    fractions = np.bincount(batch.labels["depth"].ravel(), minlength=5)[1:] / batch.targets.size
    np.testing.assert_allclose(fractions, 0.25, atol=4 * (0.25 * 0.75 / batch.targets.size) ** 0.5)


def test_rejection_caps_the_depth_at_what_a_length_can_hold() -> None:
    batch = BindingTask(lines=3, max_depth=9).sample_batch(np.random.default_rng(5), 3000)
    fractions = np.bincount(batch.labels["depth"].ravel(), minlength=10) / 3000
    np.testing.assert_allclose(fractions[1:4], 1 / 3, atol=0.04)
    assert fractions[4:].sum() == 0


def test_weights_make_each_depth_of_a_program_equally_likely() -> None:
    rng = np.random.default_rng(6)
    programs, queries = sample_questions(rng, Grammar(), 300, 16, n_queries=400, balance="weights")
    for row in range(0, 300, 50):
        depths = np.unique(programs.depth[row])
        asked = programs.depth[row, queries[row]]
        fractions = [np.mean(asked == depth) for depth in depths]
        np.testing.assert_allclose(fractions, 1 / len(depths), atol=0.12)


def test_without_balance_every_line_is_equally_likely() -> None:
    _, queries = sample_questions(np.random.default_rng(7), Grammar(), 4000, 8, balance="none")
    np.testing.assert_allclose(np.bincount(queries.ravel(), minlength=8) / 4000, 1 / 8, atol=0.025)


def test_references_are_drawn_by_depth_to_the_exponent() -> None:
    programs = sample_programs(np.random.default_rng(8), Grammar(exponent=2.0, p_constant=0.4), 40_000, 3)
    second_refers = (programs.depth[:, 1] == 2) & ~programs.is_constant[:, 2]
    to_second = np.mean(programs.reference[second_refers, 2] == 1)  # weights 1² against 2²
    assert to_second == pytest.approx(4 / 5, abs=0.015)
    assert np.mean(programs.is_constant[:, 1]) == pytest.approx(0.4, abs=0.01)
    assert programs.is_constant[:, 0].all()


def test_names_and_digits_are_drawn_uniformly() -> None:
    programs = sample_programs(np.random.default_rng(9), Grammar(n_variables=5, n_constants=4), 20_000, 5)
    for line in range(5):
        np.testing.assert_allclose(np.bincount(programs.variables[:, line], minlength=5) / 20_000, 0.2, atol=0.015)
    digits = programs.value[programs.is_constant]
    np.testing.assert_allclose(np.bincount(digits, minlength=4) / len(digits), 0.25, atol=0.01)
    assert (np.sort(programs.variables, axis=1) == np.arange(5)).all()


def test_reassignment_happens_as_often_as_asked() -> None:
    programs = sample_programs(np.random.default_rng(10), Grammar(reassign=0.3), 5000, 10)
    again = [[programs.variables[row, n] in programs.variables[row, :n] for n in range(1, 10)] for row in range(1000)]
    assert np.mean(again) == pytest.approx(0.3, abs=0.025)
    refers = programs.reference >= 0
    rows, lines = np.nonzero(refers)
    assert (programs.variables[rows, lines] != programs.variables[rows, programs.reference[rows, lines]]).all()


def test_an_impossible_question_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bindscope.tasks.binding.sampler.MOST_CANDIDATES", 2000)
    task = BindingTask(lines=8, max_depth=5, n_variables=1, reassign=0.5)  # one variable refers to no other
    with pytest.raises(BindscopeError, match=r"found no program for \d+ of 8 questions"):
        task.sample_batch(np.random.default_rng(0), 8)


@given(st.integers(1, 60))
def test_rows_of_the_wrong_width_are_refused(width: int) -> None:
    assume(width < 7 or (width - 3) % 4)
    with pytest.raises(BindscopeError, match="are not programs"):
        tokens_to_programs(np.zeros((1, width), np.int64))


def test_rows_that_use_an_unassigned_variable_are_refused() -> None:
    tokens = np.array([parse_program("a=5\nb=a\n#b:").tokens] * 2)
    tokens[1, 6] = 30
    with pytest.raises(BindscopeError, match="row 1 is not a binding program"):
        tokens_to_programs(tokens)


def test_a_negative_exponent_prefers_short_chains() -> None:
    """Also without a warning, which is an error in tests."""
    depths = [
        sample_programs(np.random.default_rng(0), Grammar(max_depth=4, exponent=exponent), 500, 12).depth.mean()
        for exponent in (-3.0, 0.0, 3.0)
    ]
    assert depths[0] < depths[1] < depths[2]


@pytest.mark.parametrize("balance", ["rejection", "weights", "none"])
def test_no_line_of_another_depth_is_asked_than_was_wanted(balance: str) -> None:
    programs, queries = sample_questions(
        np.random.default_rng(8),
        Grammar(),
        200,
        16,
        balance=balance,
        depths=range(2, 4),  # type: ignore[arg-type]
    )
    assert set(np.take_along_axis(programs.depth, queries, axis=1).flat) == {2, 3}
