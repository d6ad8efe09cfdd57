"""Spectra and their unevenness against definitions written as loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bindscope.measures.arithmetic.cyclic import CyclicNumbers
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.spectra import MATRICES, circularity, embedding_spectra, fourier_norms, gini
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import find_preset
from bindscope.tasks.assign_add import AssignAddTask

CONFIG = find_preset("assign-add").config


def test_norms_are_projections_on_a_cosine_and_a_sine():
    rows = np.random.default_rng(0).normal(size=(7, 4))
    n = np.arange(7)
    for k, found in enumerate(fourier_norms(rows), start=1):
        components = [component(2 * np.pi * k * n / 7) for component in (np.cos, np.sin)]
        parts = [component @ rows / np.linalg.norm(component) for component in components]
        assert found == pytest.approx(np.linalg.norm(parts))


def test_squared_norms_add_up_to_the_deviation_from_the_mean():
    rows = np.random.default_rng(1).normal(size=(59, 10)) + 3
    assert (fourier_norms(rows) ** 2).sum() == pytest.approx(((rows - rows.mean(axis=0)) ** 2).sum())


def test_gini_is_half_the_mean_difference_over_the_mean():
    amounts = np.random.default_rng(2).exponential(size=9)
    naive = np.mean([abs(one - other) for one in amounts for other in amounts]) / (2 * amounts.mean())
    assert gini(amounts) == pytest.approx(naive)
    assert gini(np.ones(8)) == pytest.approx(0)
    assert gini(np.eye(8)[3]) == pytest.approx(1 - 1 / 8)
    assert gini(np.zeros(4)) == 0


def test_a_component_put_into_the_embeddings_is_seen_through_the_weights():
    forms = SumForms.of(Transformer(CONFIG.model, torch.Generator().manual_seed(0)), CONFIG.task)
    forms.numbers[:] = np.cos(2 * np.pi * 7 * np.arange(59) / 59)[:, None] * forms.numbers[1]
    spectra = embedding_spectra(forms, CyclicNumbers.of(CONFIG.task))
    assert spectra.norm.dims == ("matrix", "frequency")
    assert tuple(spectra.matrix.values) == MATRICES
    for matrix in ("numbers", "mapped", "neurons"):
        assert int(spectra.norm.sel(matrix=matrix).idxmax()) == 7
        assert float(spectra.gini.sel(matrix=matrix)) == pytest.approx(1 - 1 / 29)
    assert float(spectra.gini.sel(matrix="unembed")) < 0.3


def test_numbers_of_a_product_are_seen_in_the_order_of_their_logarithms():
    task = AssignAddTask(operator="*")
    numbers = CyclicNumbers.of(task)
    forms = SumForms.of(Transformer(CONFIG.model, torch.Generator().manual_seed(0)), CONFIG.task)
    forms.numbers[numbers.first] = np.sin(2 * np.pi * 5 * np.arange(58) / 58)[:, None] * forms.numbers[1]
    assert int(embedding_spectra(forms, numbers).norm.sel(matrix="mapped").idxmax()) == 5


def test_circles_are_circular_and_noise_is_not() -> None:
    rng, numbers = np.random.default_rng(0), np.arange(59)
    angles = 2 * np.pi * numbers[:, None] * np.array([3, 11]) / 59
    circles = np.concatenate([3 * np.cos(angles), 3 * np.sin(angles)], 1) * np.array([2, 1, 2, 1])
    turned = circles @ np.linalg.qr(rng.normal(size=(16, 16)))[0][:4]
    np.testing.assert_allclose(circularity(turned), 1, atol=1e-9)
    assert circularity(rng.normal(size=(59, 16))).max() < 0.6
    shuffled = circularity(turned[rng.permutation(59)])
    assert shuffled.max() < 0.6


def test_circularity_is_that_of_its_definition() -> None:
    vectors = np.random.default_rng(1).normal(size=(13, 6))
    centred = vectors - vectors.mean(0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    for index, found in enumerate(circularity(vectors, 3)):
        c = centred @ directions[:, -1 - index]
        powers = [abs(sum(c[j] * np.exp(2j * np.pi * j * k / 13) for j in range(13))) ** 2 for k in range(1, 7)]
        assert found == pytest.approx(2 / (13 * (c**2).sum()) * max(powers))
