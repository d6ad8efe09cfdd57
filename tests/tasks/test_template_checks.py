"""Templates as typed: what is wrong with them, and the sequences they make."""

from __future__ import annotations

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.tasks.templates import NAMED_TASKS, Template
from bindscope.tasks.templates.checks import find_overlaps, find_problems, sample_sequences


@pytest.mark.parametrize("name", sorted(NAMED_TASKS))
def test_the_tasks_of_the_study_have_no_problem(name):
    assert find_problems(NAMED_TASKS[name].templates, NAMED_TASKS[name].labels) == ()


@pytest.mark.parametrize(
    ("templates", "labels", "words"),
    [
        ([], None, ["no templates"]),
        (["AB", "ABC"], None, ["AB has 2, ABC has 3"]),
        (["AB", "CA"], None, ["equivalent"]),
        (["AB", "Ax"], None, ["both match s0 x (AB: A = s0, B = x; Ax: A = s0)"]),
        (["AA", "AB"], [1.0], ["2 templates and 1 labels"]),
        (["AA", "AB"], [1.0, float("inf")], ["finite"]),
        (["AA", "AB"], [1.0, "A"], ["all numbers or all tokens"]),
        (["AA", "AB"], ["A", "C"], ["Label C of AB"]),
        (["AA", "AB", "BA", "ABC"], None, ["ABC has 3", "AB and BA are equivalent"]),
    ],
)
def test_each_problem_is_one_sentence(templates, labels, words):
    problems = find_problems(templates, labels)
    assert len(problems) == len(words)
    assert all(word in problem for word, problem in zip(words, problems))


def test_the_sequence_shown_matches_both_templates():
    templates = [Template.parse(text) for text in ("ABC", "AxB", "yAB", "xxA")]
    overlaps = find_overlaps(templates)
    assert len(overlaps) > 3
    for overlap in overlaps:
        assert Template.parse(overlap.first).match(overlap.sequence) is not None
        assert Template.parse(overlap.second).match(overlap.sequence) is not None


def test_samples_match_their_template_and_follow_the_seed():
    samples = sample_sequences("ABxA", 30, np.random.default_rng(0))
    template = Template.parse("ABxA")
    assert all(template.match(sample.sequence) == sample.substitution for sample in samples)
    assert all("x" not in sample.substitution.values() for sample in samples)
    assert samples == sample_sequences("ABxA", 30, np.random.default_rng(0))
    assert len({sample.sequence for sample in samples}) > 20
    many = sample_sequences("ABCDEFGHIJKLMNOPQRSTUVWXYZα", 1, np.random.default_rng(0))[0]
    assert len(set(many.sequence)) == 27
    with pytest.raises(BindscopeError, match="samples"):
        sample_sequences("A", 0, np.random.default_rng(0))
