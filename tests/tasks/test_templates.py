"""Statements about templates and about the tasks made of them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.schema import from_mapping, to_mapping
from bindscope.tasks.task import Batch
from bindscope.tasks.templates import (
    CLS,
    NAMED_TASKS,
    RandomTemplates,
    Template,
    TemplateTask,
    are_equivalent,
    find_common_sequence,
)

template_texts = st.text("ABCxy", min_size=1, max_size=4)
random_templates = st.builds(
    RandomTemplates,
    length=st.integers(6, 20),
    n_templates=st.integers(2, 15),
    n_wildcards=st.integers(2, 7),
    n_regular=st.integers(0, 2),
    seed=st.integers(0, 100),
)
tasks = st.builds(
    TemplateTask,
    name=st.sampled_from([*NAMED_TASKS, "random"]),
    alphabet=st.integers(7, 60),
    test_alphabet=st.integers(7, 60),
    seed=st.integers(0, 100),
    random=random_templates,
)
seeds = st.integers(0, 2**32 - 1)


def all_sequences(template: Template, alphabet: str) -> set[tuple[str, ...]]:
    """Every sequence of a template, by trying all injective substitutions."""
    choices = permutations(alphabet, len(template.wildcards))
    return {template.substitute(dict(zip(template.wildcards, symbols))) for symbols in choices}


@settings(max_examples=400)
@given(template_texts, template_texts, st.booleans())
def test_the_disjointness_check_agrees_with_trying_every_substitution(
    first_text: str, second_text: str, substitute_regular: bool
) -> None:
    first, second = Template.parse(first_text), Template.parse(second_text)
    alphabet = "pqrst" + ("xy" if substitute_regular else "")
    common = all_sequences(first, alphabet) & all_sequences(second, alphabet)
    witness = find_common_sequence(first, second, substitute_regular=substitute_regular)
    assert (witness is None) == (not common)
    if witness is not None:
        for template in (first, second):
            substitution = template.match(witness)
            assert substitution is not None
            assert template.substitute(substitution) == witness


@settings(max_examples=300)
@given(template_texts, template_texts)
def test_templates_are_equivalent_exactly_when_they_describe_the_same_sequences(first: str, second: str) -> None:
    left, right = Template.parse(first), Template.parse(second)
    same_sequences = all_sequences(left, "pqrstu") == all_sequences(right, "pqrstu")
    assert are_equivalent(left, right) == same_sequences


@given(st.lists(st.sampled_from([*"ABγ=(", "'print'", "'+1'", "'A'"]), min_size=1, max_size=8))
def test_a_template_reads_back_from_its_own_text(pieces: list[str]) -> None:
    template = Template.parse(" ".join(pieces))
    assert len(template) == len(pieces)
    assert str(template) == "".join(pieces)
    assert Template.parse(str(template)) == template


@settings(max_examples=60)
@given(tasks, seeds)
def test_every_sequence_matches_its_template_by_an_injective_substitution_and_solves_to_its_target(
    task: TemplateTask, seed: int
) -> None:
    splits = {**task.sample_evaluation(np.random.default_rng(seed), 12), "whole": task.training_set()}
    for batch in splits.values():
        for row, target, (template,) in zip(batch.tokens, batch.targets, batch.labels["template"]):
            index, substitution = task.find_template(row)
            assert index == template
            assert len(set(substitution.values())) == len(substitution)
            assert target[0] == pytest.approx(task.solve(row))
            assert (task.parse(task.render(row)) == row).all()


@settings(max_examples=60)
@given(tasks, seeds)
def test_train_validation_and_test_sequences_share_only_regular_tokens_and_cls(task: TemplateTask, seed: int) -> None:
    splits = task.sample_evaluation(np.random.default_rng(seed), 40)
    shared = {task.vocabulary.ids[symbol] for symbol in (*task.regular_tokens, CLS)}
    used = {name: set(batch.tokens.ravel().tolist()) - shared for name, batch in splits.items()}
    for name, symbols in used.items():
        assert symbols <= set(task.alphabets[name])
        assert all(task.vocabulary.symbols[symbol].startswith(f"{name}_") for symbol in symbols)
    assert not used["train"] & used["validation"]
    assert not used["train"] & used["test"]
    assert not used["validation"] & used["test"]


@settings(max_examples=30)
@given(tasks, seeds)
def test_training_batches_are_rows_of_one_fixed_training_set(task: TemplateTask, seed: int) -> None:
    again = from_mapping(TemplateTask, to_mapping(task))
    assert again == task
    whole = again.training_set()
    assert len(whole) == task.alphabet
    rows = {(*row, *target) for row, target in zip(whole.tokens.tolist(), whole.targets.tolist())}
    batch = task.sample_batch(np.random.default_rng(seed), 30)
    assert {(*row, *target) for row, target in zip(batch.tokens.tolist(), batch.targets.tolist())} <= rows


@settings(max_examples=40)
@given(random_templates)
def test_random_templates_are_as_asked_and_no_two_are_equivalent(drawn: RandomTemplates) -> None:
    templates = [Template.parse(text) for text in drawn.draw().templates]
    assert len(templates) == drawn.n_templates == len({template.canonical for template in templates})
    assert all(len(template) == drawn.length for template in templates)
    assert len({name for template in templates for name in template.wildcards}) <= drawn.n_wildcards
    assert len({token for template in templates for token in template.regular_tokens}) <= drawn.n_regular
    assert drawn.draw() == drawn.draw()


@pytest.mark.parametrize("name", sorted(NAMED_TASKS))
def test_named_tasks_have_disjoint_templates_and_labels_that_tell_nothing_on_average(name: str) -> None:
    task = TemplateTask(name=name, alphabet=16, test_alphabet=16)  # type: ignore[arg-type]
    templates = task.parsed_templates
    for index, first in enumerate(templates):
        for second in templates[index + 1 :]:
            assert find_common_sequence(first, second, substitute_regular=False) is None
    if task.target_kind == "real":
        labels = np.array(task.template_set.labels, dtype=float)
        assert labels.mean() == pytest.approx(0, abs=1e-12)
        assert (labels**2).mean() == pytest.approx(1)


@pytest.mark.parametrize("length", [2, 4, 6, 8])
def test_majority_asks_whether_the_first_symbol_fills_more_than_half_of_the_positions(length: int) -> None:
    task = TemplateTask(name=f"majority-{length}", alphabet=40)  # type: ignore[arg-type]
    assert len(task.parsed_templates) == 2 ** (length - 1)
    batch = task.training_set()
    sequences = batch.tokens[:, :-1]
    fills_more = (sequences == sequences[:, :1]).sum(axis=1) > length / 2
    assert (batch.targets[:, 0] == np.where(fills_more, 1, -1)).all()


@pytest.mark.parametrize("length", [5, 7])
def test_counting_labels_grow_evenly_with_how_often_the_first_symbol_occurs(length: int) -> None:
    batch = TemplateTask(name=f"counting-{length}", alphabet=300).training_set()  # type: ignore[arg-type]
    sequences = batch.tokens[:, :-1]
    counts = (sequences == sequences[:, :1]).sum(axis=1)
    slope, _ = np.polyfit(counts, batch.targets[:, 0], deg=1)
    assert slope > 0
    assert np.corrcoef(counts, batch.targets[:, 0])[0, 1] == pytest.approx(1)


def run_print_program(task: TemplateTask, row: np.ndarray) -> str:
    """Run the sequence as the Python program it is and catch what it prints."""
    text = task.render(row).replace(" ", "").replace("train_", "v")
    *assignments, call = text.split(",")
    names = dict(assignment.split("=") for assignment in assignments)
    return names[call.removeprefix("print(").removesuffix(")")].strip('"')


@pytest.mark.parametrize("name", ["print-real", "print-swapped", "print-symbolic"])
def test_print_tasks_are_answered_with_what_the_program_prints(name: str) -> None:
    task = TemplateTask(name=name, alphabet=50)  # type: ignore[arg-type]
    batch = task.training_set()
    for row, target in zip(batch.tokens, batch.targets[:, 0]):
        printed = run_print_program(task, row)
        if task.target_kind == "real":
            assert float(printed) == target
        else:
            assert printed.replace("v", "train_") == task.vocabulary.symbols[target]


def test_copy_answers_with_its_own_symbol_at_cls() -> None:
    task = TemplateTask(name="copy", alphabet=20)
    batch = task.training_set()
    assert (batch.tokens[:, 0] == batch.targets[:, 0]).all()
    assert (batch.tokens[:, 1] == len(task.vocabulary) - 1).all()
    assert batch.target_positions.tolist() == [1]
    assert (task.d_out, task.target_kind) == (len(task.vocabulary), "token")


def test_real_tasks_have_one_float_output_read_at_cls() -> None:
    task = TemplateTask(name="aba-abb", alphabet=20)
    batch: Batch = task.training_set()
    assert batch.targets.dtype == np.float32
    assert batch.targets.shape == (20, 1)
    assert (task.d_out, task.target_kind, task.n_positions) == (1, "real", 4)
    assert task.vocabulary.symbols[-1] == CLS


def test_templates_and_symbols_are_drawn_uniformly() -> None:
    task = TemplateTask(name="aabb-abab", alphabet=5, test_alphabet=40)
    splits = task.sample_evaluation(np.random.default_rng(0), 20_000)
    test = splits["test"]
    assert test.labels["template"].mean() == pytest.approx(0.5, abs=0.02)
    frequencies = np.bincount(test.tokens[:, 0] - task.alphabets["test"].start) / 20_000
    assert frequencies == pytest.approx(np.full(40, 1 / 40), abs=0.006)


def test_an_alphabet_no_larger_than_the_wildcards_still_gives_injective_sequences() -> None:
    task = TemplateTask(name="custom", templates=("ABC", "ABA"), labels=(1.0, -1.0), alphabet=3, test_alphabet=3)
    test = task.sample_evaluation(np.random.default_rng(0), 600)["test"]
    orders = {tuple(row) for row in test.tokens[test.labels["template"][:, 0] == 0].tolist()}
    assert len(orders) == 6  # all permutations of the three symbols


def test_a_custom_task_may_answer_with_a_wildcard_or_a_regular_token() -> None:
    task = TemplateTask(name="custom", templates=("ABA", "ABB"), labels=("B", "'no'"), alphabet=9, test_alphabet=9)
    batch = task.training_set()
    for row, target, (template,) in zip(batch.tokens, batch.targets[:, 0], batch.labels["template"]):
        assert target == (row[1] if template == 0 else task.vocabulary.ids["no"])


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"name": "custom"}, "0 templates and 0 labels"),
        ({"name": "custom", "templates": ("AB",), "labels": ()}, "1 templates and 0 labels"),
        ({"name": "custom", "templates": ("AB", "BA"), "labels": (1.0, 2.0)}, "AB and BA are equivalent"),
        ({"name": "custom", "templates": ("AB", "ABA"), "labels": (1.0, 2.0)}, "have 2 and 3 tokens"),
        ({"name": "custom", "templates": ("AB", ""), "labels": (1.0, 2.0)}, "at least one token"),
        ({"name": "custom", "templates": ("A'x",), "labels": (1.0,)}, "column 2: a quoted token"),
        ({"name": "custom", "templates": ("AB", "AA"), "labels": ("A", "B")}, "wildcard B does not occur"),
        ({"name": "custom", "templates": ("AB", "AA"), "labels": ("A", 1.0)}, "all numbers or all tokens"),
        ({"name": "custom", "templates": ("AB", "AA"), "labels": ("A", "xy")}, "is not one token"),
        ({"name": "custom", "templates": ("AB", "AA"), "labels": (1.0, float("nan"))}, "finite"),
        ({"name": "custom", "templates": ("A'CLS'",), "labels": (1.0,)}, "'CLS' names a symbol"),
        ({"name": "copy", "templates": ("AB",)}, "'copy' has its own templates"),
        ({"name": "print-symbolic", "alphabet": 3}, "task.alphabet: 3 symbols are too few"),
        ({"test_alphabet": 1}, "task.test_alphabet: 1 symbols are too few"),
    ],
)
def test_impossible_settings_are_refused_with_the_reason(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(BindscopeError) as refusal:
        TemplateTask(**settings_)  # type: ignore[arg-type]
    assert message in str(refusal.value)


def test_random_templates_out_of_range_or_too_many_are_refused() -> None:
    with pytest.raises(BindscopeError, match=r"task\.random\.length"):
        RandomTemplates(length=21)
    with pytest.raises(BindscopeError, match="only 2 different templates"):
        TemplateTask(name="random", random=RandomTemplates(length=2, n_templates=3, n_wildcards=2))


def test_sequences_that_are_not_of_the_task_are_refused() -> None:
    task = TemplateTask(name="aba-abb", alphabet=8)
    with pytest.raises(BindscopeError, match=r"has 3 symbols, such as 'train_\d .*'; got 2"):
        task.parse("train_1 train_2")
    with pytest.raises(BindscopeError, match="symbol 2: 'train_9' is not a token"):
        task.parse("train_1 train_9 train_1")
    with pytest.raises(BindscopeError, match="matches none of the templates"):
        task.solve(task.parse("train_1 train_1 train_1"))
