"""Ridge regression and random features with the kernel, against doing the same sequence by sequence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.tasks.templates import TemplateTask
from bindscope.theory.kernel import KernelSettings, sequence_kernel, template_kernel
from bindscope.theory.kernel_ridge import (
    SequenceSample,
    Structures,
    answers_from_means,
    half_loss_size,
    ridge_generalises,
)
from theory.kernel_features import features_converge, fresh_sequences, random_features, sample_attention

COARSE = KernelSettings(points=64, inner_points=8)


def sequences_of(task, batch):
    return [tuple(task.vocabulary.decode(row[:-1])) for row in batch.tokens]


def test_the_gram_matrix_by_structure_is_that_of_the_sequences():
    task = TemplateTask(name="custom", templates=("ABx", "BAA", "AAA"), labels=(1.0, -1.0, 0.5), alphabet=5, seed=3)
    kernel = template_kernel(task.parsed_templates, replace(COARSE, points=512))
    sample = SequenceSample.of(task)
    gram = Structures.of(kernel, task, [sample]).gram(sample)
    sequences = sequences_of(task, task.training_set())
    pairs = [(a, b) for a in sequences for b in sequences]
    wanted = sequence_kernel(pairs, replace(COARSE, points=512, seed=9))
    assert len(np.unique(gram.round(12))) > 6
    assert gram.reshape(-1) == pytest.approx(wanted.value, abs=5 * wanted.standard_error.max())
    assert wanted.standard_error.max() < 5e-4


def test_answers_are_those_of_ridge_regression_on_fresh_sequences():
    task = TemplateTask(name="aba-abb", alphabet=12, test_alphabet=4, seed=1)
    found = ridge_generalises(task, [12], [1], COARSE, ridge=0.01)
    train, test = task.training_set(), task.draw_sequences(np.random.default_rng(0), 6, "test")
    ours, theirs = sequences_of(task, train), sequences_of(task, test)
    settings = replace(COARSE, points=256)
    gram = sequence_kernel([(a, b) for a in ours for b in ours], settings).value.reshape(12, 12)
    across = sequence_kernel([(a, b) for a in theirs for b in ours], settings).value.reshape(6, 12)
    answers = across @ np.linalg.solve(gram + 0.01 * np.eye(12), train.targets[:, 0].astype(float))
    assert answers == pytest.approx(found.answer[0, 0].values[test.labels["template"][:, 0]], abs=0.02)


def test_regression_learns_what_the_kernel_says_it_can():
    found = ridge_generalises(TemplateTask(name="same-different"), [32, 300], [0], COARSE)
    errors = found.test_error.mean("seed").values
    assert errors[0] > 0.5 > 4 * errors[1]
    blind = replace(COARSE, gamma=0.0, cls=False)
    assert ridge_generalises(TemplateTask(name="same-different"), [100], [0], blind).test_error.item() > 0.5


def test_template_means_are_the_limit_of_symbols_used_once():
    task = TemplateTask(name="aba-abb")
    kernel = template_kernel(task.parsed_templates, COARSE)
    labels, counts = np.array([1.0, -1.0]), np.array([30, 20])
    templates = np.repeat([0, 1], counts)
    gram = kernel.matrix.value[np.ix_(templates, templates)]
    gram[np.diag_indices(50)] = kernel.with_itself.value[templates]
    weights = np.linalg.solve(gram + 0.01 * np.eye(50), labels[templates])
    wanted = kernel.matrix.value[:, templates] @ weights
    assert answers_from_means(kernel, labels, counts, 0.01) == pytest.approx(wanted, abs=1e-9)


def test_half_the_loss_is_reached_where_it_is_said_to_be():
    kernel = template_kernel(["ABA", "ABB"], COARSE)
    size = half_loss_size(kernel, [1.0, -1.0])
    assert size.low < size.value < size.high
    counts = np.full(2, size.value / 2)
    answers = answers_from_means(kernel, np.array([1.0, -1.0]), counts, 1e-4)
    assert ((answers - [1.0, -1.0]) ** 2).mean() == pytest.approx(0.5, abs=1e-6)
    blind = template_kernel(["ABA", "ABB"], KernelSettings(points=16, beta=0.0))
    assert np.isinf(half_loss_size(blind, [1.0, -1.0]).value)


def test_features_of_large_width_have_the_kernel_as_gram_matrix():
    sequences = [("a", "a"), ("a", "b"), ("c", "d")]
    pairs = [(a, b) for a in sequences for b in sequences]
    wanted = sequence_kernel(pairs, COARSE).value.reshape(3, 3)
    features = random_features(sequences, COARSE, 40_000, np.random.default_rng(0))
    assert features @ features.T / 40_000 == pytest.approx(wanted, abs=0.012)


def test_neurons_are_what_explicit_value_weights_make():
    sequences, settings, rng = [("a", "a"), ("a", "b")], replace(COARSE, beta=1.0), np.random.default_rng(1)
    gram = np.zeros((2, 2))
    for _ in range(100):  # 8 heads and 40 neurons with explicit weights
        total = np.zeros((2, 40))
        for _ in range(8):
            w, p = dict(zip("abe", rng.standard_normal(3))), rng.standard_normal(3)
            value = {**{s: rng.standard_normal(40) for s in "abe"}, **{k: rng.standard_normal(40) for k in range(3)}}
            for row, sequence in enumerate((("a", "a", "e"), ("a", "b", "e"))):
                attention = np.exp([w[s] + p[k] for k, s in enumerate(sequence)])
                attention /= attention.sum()
                total[row] += sum(a * (value[s] + value[k]) for k, (a, s) in enumerate(zip(attention, sequence)))
        features = np.cos(total / np.sqrt(8) + 0.5)
        gram += features @ features.T / 40 / 100
    drawn = [random_features(sequences, settings, 8, rng) for _ in range(1000)]
    assert np.mean([f @ f.T / 8 for f in drawn], axis=0) == pytest.approx(gram, abs=0.03)


def test_features_tend_to_the_kernel_like_one_over_the_root_of_width():
    found = features_converge(["AA", "AB"], COARSE, widths=(64, 1024, 16384), n_seeds=6)
    errors = np.sqrt((found.root_mean_square**2).mean("seed")).values
    slope = np.polyfit(np.log(found.width), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.12)
    assert found.features.dims == ("width", "seed", "sequence", "other")


def test_heads_are_counted_and_sequences_kept_apart():
    sequences = fresh_sequences([*TemplateTask(name="aba-abb").parsed_templates])
    assert len({symbol for sequence in sequences for symbol in sequence}) == 8
    assert [sequence[0] == sequence[2] for sequence in sequences] == [True, True, False, False]
    with pytest.raises(BindscopeError, match="width"):
        sample_attention(sequences, COARSE, 0, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "n", "ridge", "sentence"),
    [
        ("copy", 8, 1e-4, "symbols"),
        ("aba-abb", 1, 1e-4, "between 2"),
        ("aba-abb", 10**6, 1e-4, "4096"),
        ("aba-abb", 8, 0.0, "ridge"),
    ],
)
def test_impossible_regressions_are_refused(name, n, ridge, sentence):
    with pytest.raises(BindscopeError, match=sentence):
        ridge_generalises(TemplateTask(name=name), [n], [0], COARSE, ridge)
