"""The transformer kernel against Monte Carlo, exact limits and its own symmetries."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from bindscope.errors import BindscopeError
from bindscope.theory.kernel import (
    KernelSettings,
    attention_kernel,
    canonical_pair,
    sequence_kernel,
    student_quantile,
    template_kernel,
)
from bindscope.theory.kernel_activation import ACTIVATIONS, find_activation, integrate_activation
from bindscope.theory.kernel_attention import mix_shared, settle_basis
from bindscope.theory.kernel_points import generating_vector, lattice_points, to_gaussian

COARSE = KernelSettings(points=128, inner_points=8)


def sample_plainly(first, second, beta, gamma, n=60_000, seed=0):
    """K_attn of two sequences by Monte Carlo, and its standard error."""
    rng, symbols = np.random.default_rng(seed), sorted({*first, *second})
    x, y = (np.array([[a == b for b in symbols] for a in sequence], float) for sequence in (first, second))
    w, p = rng.standard_normal((n, len(symbols))), gamma * rng.standard_normal((n, len(first)))
    s, t = np.exp(beta * (w @ x.T + p)), np.exp(beta * (w @ y.T + p))
    s, t = s / s.sum(1, keepdims=True), t / t.sum(1, keepdims=True)
    products = (s @ (x @ y.T + gamma**2 * np.eye(len(first))) * t).sum(1)
    return products.mean(), products.std() / np.sqrt(n)


def test_template_kernels_agree_with_plain_monte_carlo():
    templates, settings = ["AxA", "AxB", "xAB"], replace(COARSE, beta=2.0, gamma=0.7)
    kernel = template_kernel(templates, settings)
    for i, first in enumerate(("axa*", "axb*", "xab*")):
        for j, second in enumerate(("cxc*", "cxd*", "xcd*")):
            value, error = sample_plainly(first, second, 2.0, 0.7)
            both = np.hypot(error, kernel.attention.standard_error[i, j])
            assert abs(kernel.attention.value[i, j] - value) < 4 * both
        value, error = sample_plainly(first, first, 2.0, 0.7)
        assert abs(kernel.moments.same.mean(0)[i] - value) < 5 * error


@pytest.mark.parametrize(("first", "second"), [("aab", "aba"), ("abc", "bca"), ("abc", "dea"), ("ab", "ab")])
def test_kernels_of_sequences_with_common_symbols_agree_with_plain_monte_carlo(first, second):
    found = attention_kernel([(first, second)], replace(COARSE, cls=False))
    value, error = sample_plainly(first, second, 3.0, 1.0)
    assert abs(found.value[0] - value) < 4 * np.hypot(error, found.standard_error[0])


def test_without_sharpness_attention_is_uniform_and_the_kernel_a_count():
    pairs = [("abac", "baca"), ("aabb", "ccdd"), ("abcd", "abcd")]
    found = attention_kernel(pairs, KernelSettings(beta=0, gamma=0.6, cls=False, points=16))
    equal = [sum(a == b for a in first for b in second) for first, second in pairs]
    assert found.value == pytest.approx([(count + 0.36 * 4) / 16 for count in equal], abs=1e-14)
    kernel = template_kernel(["AxAB"], KernelSettings(beta=0, gamma=0.6, points=16))  # x and CLS are common
    assert kernel.attention.value == pytest.approx((2 + 0.36 * 5) / 25, abs=1e-14)
    assert kernel.moments.same.mean() == pytest.approx((4 + 1 + 1 + 1 + 0.36 * 5) / 25, abs=1e-14)


def test_sequences_with_nothing_in_common_are_independent():
    settings = replace(COARSE, gamma=0.0, cls=False)
    kernel = template_kernel(["ABA", "ABB"], settings)
    assert np.abs(kernel.attention.value).max() == 0
    mean = np.exp(-kernel.moments.same.mean(0) / 2) * np.cos(0.5)  # E cos(a + b₂)
    assert kernel.matrix.value == pytest.approx(np.outer(mean, mean), abs=1e-14)


def test_templates_and_sequences_of_them_have_the_same_kernel():
    kernel = template_kernel(["ABA", "ABB"], replace(COARSE, points=256))
    found = sequence_kernel([("aba", "cdc"), ("aba", "cdd"), ("abb", "cdd")], replace(COARSE, points=256, seed=5))
    wanted = kernel.matrix.value[[0, 0, 1], [0, 1, 1]]
    error = np.hypot(found.standard_error, kernel.matrix.standard_error[[0, 0, 1], [0, 1, 1]])
    assert (np.abs(found.value - wanted) < 4 * error).all()
    assert (found.standard_error < 5e-4).all()


def test_renaming_symbols_changes_nothing():
    pairs = [("aab", "bca"), ("xxy", "yzx"), ("bba", "acb"), ("aab", "bcc")]
    found = sequence_kernel(pairs, replace(COARSE, points=64)).value
    assert found[0] == found[1] == found[2] != found[3]
    names = [("ABA", "ABB"), ("QPQ", "ZAA")]
    first, second = (template_kernel(each, COARSE).matrix.value for each in names)
    assert (first == second).all()


def test_a_pair_of_sequences_has_a_canonical_name():
    assert canonical_pair("xyx", "yzz", cls=False) == canonical_pair("pqp", "qaa", cls=False) == ((0, 1, 0), (1, 2, 2))
    assert canonical_pair("xyx", "yzz", cls=False) != canonical_pair("xyx", "xzz", cls=False)
    assert canonical_pair("a", "b") == ((1, 0), (2, 0))
    with pytest.raises(BindscopeError, match="equal lengths"):
        canonical_pair("ab", "abc")


def test_kernel_matrices_are_symmetric_and_positive():
    kernel = template_kernel(["AAA", "AAB", "ABA", "ABB", "ABC"], KernelSettings())
    assert (kernel.matrix.value == kernel.matrix.value.T).all()
    assert (kernel.eigenvalues.low > 0).all()
    assert (kernel.with_itself.value > np.diag(kernel.matrix.value)).all()


def test_intervals_hold_what_finer_estimates_find():
    templates, coarse = ["ABA", "ABB", "AAB"], KernelSettings(points=32, inner_points=4)
    fine = template_kernel(templates, KernelSettings(points=1024, inner_points=16, seed=77))
    hits = []
    for seed in range(40):
        found = template_kernel(templates, replace(coarse, seed=seed)).eigenvalues
        hits.append((found.low <= fine.eigenvalues.value) & (fine.eigenvalues.value <= found.high))
    assert (np.mean(hits, axis=0) > 0.82).all()  # 40 draws at 95 %: fewer than 33 once in 10⁴
    assert np.mean(hits) < 1


def test_more_points_make_errors_smaller_faster_than_sampling_does():
    errors = [
        np.mean([template_kernel(["AA", "AB"], KernelSettings(points=n, seed=s)).matrix.standard_error for s in (0, 1)])
        for n in (32, 1024)
    ]
    assert errors[0] / errors[1] > 2 * np.sqrt(1024 / 32)


def test_the_readings_by_plain_sampling_are_met():
    readings = {("AA", "AB"): (2.8e-3, 5.8e-4), ("ABA", "ABB"): (1.8e-3, 1e-4), ("AABB", "ABAB"): (1.8e-3, 1.4e-4)}
    for templates, wanted in readings.items():
        for beta, reading in zip((3.0, 1.0), wanted):
            found = template_kernel(templates, KernelSettings(beta=beta, points=64)).eigenvalues.value[0]
            assert abs(found - reading) < 4e-4  # about what 2·10⁵ samples leave


def test_cosines_of_gaussians_have_their_closed_form():
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 20)) * 2
    cross = np.sqrt(first * second) * rng.uniform(-1, 1, 20)
    for b1, b2 in ((1.0, 0.5), (2.0, -1.3), (0.3, np.pi / 2)):
        cosine = find_activation("cos", b1, b2)
        wanted = integrate_activation(cosine.function, first, second, cross)
        assert cosine.expect(first, second, cross) == pytest.approx(wanted, abs=1e-10)


def test_quadrature_finds_the_arc_cosine_kernel_and_products():
    first, second, cross = np.array([1.0, 0.7]), np.array([0.9, 1.1]), np.array([0.6, -0.3])
    relu = find_activation("relu")
    assert integrate_activation(relu.function, first, second, cross, 128) == pytest.approx(
        relu.expect(first, second, cross), abs=2e-3
    )
    assert integrate_activation(lambda t: t, first, second, cross) == pytest.approx(cross, abs=1e-13)
    assert find_activation("identity").expect(first, second, cross) == pytest.approx(cross)
    cubes = integrate_activation(lambda t: t**3, first, second, cross)  # Isserlis
    assert cubes == pytest.approx(9 * first * second * cross + 6 * cross**3)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_every_activation_agrees_with_sampled_gaussians(name):
    covariance = np.array([[1.2, 0.5], [0.5, 0.8]])
    a, b = np.random.default_rng(0).multivariate_normal([0, 0], covariance, 100_000).T
    activation = find_activation(name)
    products = activation.function(a) * activation.function(b)
    found = activation.expect(np.array(1.2), np.array(0.8), np.array(0.5))
    assert abs(found - products.mean()) < 4 * products.std() / np.sqrt(len(a))


def test_any_function_can_be_the_activation():
    own = template_kernel(["AA", "AB"], replace(COARSE, activation=lambda t: np.cos(t + 0.5)))
    named = template_kernel(["AA", "AB"], COARSE)
    assert own.matrix.value == pytest.approx(named.matrix.value, abs=1e-12)


def test_lattice_points_are_even_and_gaussian_quantiles_exact():
    p = np.concatenate(
        [np.random.default_rng(0).random(2000), 10.0 ** -np.arange(1, 14), 1 - 10.0 ** -np.arange(1, 14)]
    )
    assert to_gaussian(p) == pytest.approx([NormalDist().inv_cdf(each) for each in p], abs=1e-14, rel=1e-14)
    assert np.gcd(generating_vector(96, 5), 96).max() == 1
    points = lattice_points(4096, 4, np.random.default_rng(0).random((2, 4)))
    assert points.shape == (2, 4096, 4)
    assert np.abs(np.exp(points.sum(2)).mean(1) - (np.e - 1) ** 4).max() < 1e-2  # random points: 0.1
    assert student_quantile(15) == pytest.approx(2.13145, abs=1e-5)
    assert student_quantile(7) == pytest.approx(2.36462, abs=1e-4)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"beta": -1.0}, "beta"),
        ({"beta": 30.0, "gamma": 1.0}, "at most 40"),
        ({"gamma": float("nan")}, "gamma"),
        ({"points": 3}, "points"),
        ({"points": 10**9}, "points"),
        ({"randomisations": 2}, "randomisations"),
        ({"seed": -1}, "seed"),
        ({"b1": float("inf")}, "b1"),
        ({"activation": "rellu"}, "Did you mean 'relu'"),
    ],
)
def test_impossible_settings_are_refused(settings, sentence):
    with pytest.raises(BindscopeError, match=sentence):
        KernelSettings(**settings)


@pytest.mark.parametrize(
    ("templates", "sentence"),
    [
        ([], "give 1 to 128"),
        (["A" * 21], "at most 20"),
        (["AB", "ABC"], "make them equal"),
        (["AB", "BA"], "equivalent"),
    ],
)
def test_impossible_templates_are_refused(templates, sentence):
    with pytest.raises(BindscopeError, match=sentence):
        template_kernel(templates)


def test_a_span_has_one_basis_however_it_was_found():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(7, 3)))[0]
    turned = basis @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert np.abs(basis - turned).max() > 0.1
    settled = settle_basis(basis)
    np.testing.assert_allclose(settle_basis(turned), settled, atol=1e-12)
    np.testing.assert_allclose(settled.T @ settled, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(settled @ settled.T, basis @ basis.T, atol=1e-12)  # the same span


def test_shared_logits_do_not_depend_on_how_equal_singular_values_are_told_apart(monkeypatch):
    shared = np.eye(3)[np.array([[0, 1, 0, 2], [0, 1, 1, 2]])]
    left, sizes, right = mix_shared(shared, 1.0)
    plain = np.linalg.svd

    def turned(matrix, full_matrices):
        """Another basis of each span, as other processors find it: columns of equal size swapped, signs changed."""
        vectors, values, others = plain(matrix, full_matrices=full_matrices)
        order = np.lexsort((-np.arange(len(values)), -values.round(9)))
        return -vectors[:, order], values, others

    monkeypatch.setattr(np.linalg, "svd", turned)
    again = mix_shared(shared, 1.0)
    for found, expected in zip(again, (left, sizes, right)):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    mixture = np.concatenate([shared, np.broadcast_to(np.eye(4), (2, 4, 4))], axis=2)
    mixture = (mixture - mixture.mean(1, keepdims=True)).reshape(8, -1)
    np.testing.assert_allclose(left * sizes @ right, mixture, atol=1e-12)  # it is still the whole of it


def test_of_equally_good_generators_the_first_is_taken():
    for n_points, n_dimensions in ((64, 2), (512, 2)):
        vector = generating_vector(n_points, n_dimensions)
        mirrored = int(pow(int(vector[1]), -1, n_points))  # g and its inverse make the same lattice, axes swapped
        twins = {min(step, n_points - step) for step in (int(vector[1]), mirrored)}
        assert len(twins) == 2
        assert vector[1] == min(twins)
