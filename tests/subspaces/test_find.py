"""The sparse classifier meets its optimality conditions; planted and constructed subspaces are found."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from bindscope.errors import BindscopeError
from bindscope.subspaces import Samples, Subspace, find_subspace, fit_subspace, principal_angles, sample_stream
from bindscope.subspaces.sparse import choose_features, fit_classifier, fit_components
from subspaces.constructed_space import VALUE_AT_QUERY, Known
from subspaces.test_subspace import generator, success


def plant(n: int, seed: int) -> tuple[Samples, Subspace]:
    """Ten classes in a plane of nine dimensions of 24, beside six louder directions that say nothing."""
    axes = torch.linalg.qr(torch.randn(24, 24, generator=generator(99))).Q.T
    labels = torch.randint(10, (n,), generator=generator(seed))
    means = 3 * torch.linalg.eigh(torch.eye(10) - 0.1).eigenvectors[:, 1:]  # [class, 9]: a regular simplex
    loud = 6 * torch.randn(n, 6, generator=generator(seed + 1))
    noise = 0.1 * torch.randn(n, 24, generator=generator(seed + 2))
    return Samples(means[labels] @ axes[:9] + loud @ axes[9:15] + noise, labels), Subspace.spanned_by(axes[:9])


@pytest.mark.parametrize("l1", [0.003, 0.03])
def test_the_classifier_is_the_best_for_its_penalty(l1: float) -> None:
    """At the optimum the slope is −l1·sign where a weight is not 0, at most l1 where it is, and 0 for the bias."""
    samples, _ = plant(400, 5)
    x = fit_components(samples.vectors).coordinates(samples.vectors)
    classifier = fit_classifier(x, samples.labels, 10, l1, most_iterations=5000)
    gap = (x @ classifier.weight + classifier.bias).softmax(1) - F.one_hot(samples.labels, 10)
    slope, used = x.T @ gap / len(x), classifier.weight != 0
    assert used.any()
    assert not used.all()
    assert (slope[used] + l1 * classifier.weight[used].sign()).abs().max() < 0.1 * l1
    assert slope[~used].abs().max() < 1.05 * l1
    assert gap.mean(0).abs().max() < 0.1 * l1


def test_a_penalty_above_the_steepest_slope_leaves_no_weight() -> None:
    samples, _ = plant(200, 6)
    x = fit_components(samples.vectors).coordinates(samples.vectors)
    assert not fit_classifier(x, samples.labels, 10, l1=1.0).weight.any()


def test_a_planted_subspace_is_found_among_louder_directions() -> None:
    samples, planted = plant(2000, 0)
    found = fit_subspace(samples, "values", rank=9)
    assert principal_angles(found.subspace, planted).max() < 0.05
    assert 0 not in found.chosen  # the loudest component says nothing about the class
    test, _ = plant(500, 10)
    assert found.score(test) > 0.99
    assert found.variance_fraction < 0.5


def test_with_shuffled_labels_nothing_is_read_off() -> None:
    samples, _ = plant(1000, 0)
    test, _ = plant(1000, 10)
    found = fit_subspace(samples.shuffle_labels(generator()), "values", rank=9)
    assert found.score(test) < 0.2


def test_features_are_chosen_in_full_even_when_few_say_anything() -> None:
    x = torch.randn(200, 6, generator=generator())
    labels = (x[:, 4] > 0).long()
    chosen = choose_features(x, labels, n_classes=2, n_features=6)
    assert chosen[0] == 4
    assert sorted(chosen.tolist()) == list(range(6))


def test_the_names_of_the_constructed_model_are_found_exactly(known: Known, name_pairs) -> None:
    fit, test = name_pairs
    found = find_subspace(known.model, fit, of="names", layer=1, position="query", rank=25)
    assert principal_angles(found.subspace, known.letters).max() < 1e-3
    assert found.score(sample_stream(known.model, test, of="names", layer=1, position="query")) == 1
    assert success(known.model, test, 1, "query", found.subspace.swap) == 1


def test_the_values_of_the_constructed_model_are_found(known: Known, root_pairs) -> None:
    fit, test = root_pairs
    where = {"layer": VALUE_AT_QUERY, "position": "query"}
    found = find_subspace(known.model, fit, of="values", **where)  # type: ignore[arg-type]
    assert principal_angles(found.subspace, known.value)[:9].max() < 0.5
    assert found.score(sample_stream(known.model, test, of="values", **where)) > 0.98  # type: ignore[arg-type]
    assert success(known.model, test, VALUE_AT_QUERY, "query", found.subspace.swap) > 0.98


def test_a_rank_above_the_width_is_refused(known: Known, root_pairs) -> None:
    with pytest.raises(BindscopeError, match="rank 500: the residual stream is"):
        find_subspace(known.model, root_pairs[0], of="values", layer=0, position="query", rank=500)
