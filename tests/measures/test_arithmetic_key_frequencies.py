"""Restricted and excluded loss on logits whose Fourier components are known, and against a projection written out."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from bindscope.measures.arithmetic.analytic import concentration, output_phases
from bindscope.measures.arithmetic.cyclic import CyclicNumbers
from bindscope.measures.arithmetic.key_frequencies import find_key_frequencies, frequency_losses, split_logits
from bindscope.measures.arithmetic.neurons import fit_neurons
from bindscope.tasks.assign_add import AssignAddTask
from measures.analytic_adder import AnalyticAdder

TASK = AssignAddTask(modulus=11)
NUMBERS = CyclicNumbers.of(TASK)


def component_logits(*key: int, size: float = 3.0) -> np.ndarray:
    """[n1, n2, answer]: the Fourier components of n1 + n2 − answer."""
    n = np.arange(11)
    away = n[:, None, None] + n[:, None] - n
    return size * sum(np.cos(2 * np.pi * k * away / 11) for k in key)


def test_the_split_is_the_projection_on_components_of_the_sum():
    logits = np.random.default_rng(0).normal(size=(11, 11, 11))
    n1, n2 = np.indices((11, 11)).reshape(2, -1)
    components = [component(2 * np.pi * k * (n1 + n2) / 11) for k in (2, 5) for component in (np.cos, np.sin)]
    basis = np.stack([*components, np.ones(121)], axis=1)
    flat = logits.reshape(121, 11)
    solution = np.linalg.lstsq(basis, flat, rcond=None)[0]
    restricted, excluded = split_logits(logits, [2, 5])
    np.testing.assert_allclose(restricted.reshape(121, 11), basis @ solution, atol=1e-12)
    np.testing.assert_allclose(excluded.reshape(121, 11), flat - basis[:, :4] @ solution[:4], atol=1e-12)


def test_a_model_of_two_components_needs_these_and_no_others():
    losses = frequency_losses(component_logits(2, 3), [2, 3], NUMBERS, TASK.pairs.is_trained)
    loss = losses.loss.sel(pairs="held_out")
    assert float(loss.sel(logits="restricted")) == pytest.approx(float(loss.sel(logits="full")))
    assert float(loss.sel(logits="excluded")) == pytest.approx(np.log(11))
    assert float(losses.accuracy.sel(logits="restricted", pairs="trained")) == 1
    others = frequency_losses(component_logits(2, 3), [1, 4], NUMBERS, TASK.pairs.is_trained).loss.sel(pairs="trained")
    assert float(others.sel(logits="restricted")) == pytest.approx(np.log(11))
    assert float(others.sel(logits="excluded")) == pytest.approx(float(others.sel(logits="full")))


def test_pairs_learned_by_heart_are_lost_when_only_components_remain():
    trained = TASK.pairs.is_trained
    heart = 8.0 * np.eye(11)[NUMBERS.sums] * trained[..., None]
    loss = frequency_losses(heart, [2], NUMBERS, trained).loss
    assert float(loss.sel(logits="full", pairs="trained")) < 0.01
    assert float(loss.sel(logits="restricted", pairs="trained")) > 0.5
    assert float(loss.sel(logits="excluded", pairs="trained")) < 0.1
    assert float(loss.sel(logits="full", pairs="held_out")) == pytest.approx(np.log(11))


@pytest.mark.parametrize("operator", ["-", "*"])
def test_other_operators_are_read_on_their_circle(operator):
    task = AssignAddTask(modulus=11, operator=operator)
    numbers = CyclicNumbers.of(task)
    m = numbers.modulus
    by_value = np.zeros((11, 11, 11))
    away = numbers.sums[..., None] - np.arange(m)
    rows, columns = numbers.first[:, None, None], numbers.second[:, None]
    by_value[rows, columns, numbers.answer] = 5 * np.cos(2 * np.pi * 3 * away / m)
    losses = frequency_losses(by_value, [3], numbers, task.pairs.is_trained)
    assert (losses.accuracy.sel(logits="restricted") == 1).all()
    assert (losses.accuracy.sel(logits="excluded") < 0.5).all()


def test_key_frequencies_are_those_of_one_neuron_in_a_hundred_that_fits():
    frequency = np.array([7] * 150 + [9] * 45 + [3] * 2 + [4] + [5] * 2)
    explained = np.where(frequency == 9, 0.49, 0.9)
    fits = xr.Dataset({"frequency": ("neuron", frequency), "explained_variance": ("neuron", explained)})
    assert find_key_frequencies(fits) == [3, 5, 7]


def test_the_written_network_adds_and_its_neurons_are_found_again():
    adder = AnalyticAdder.draw(59, 512, np.random.default_rng(0))
    assert adder.accuracy == 1
    assert AnalyticAdder.draw(59, 29, np.random.default_rng(0)).accuracy < 0.9  # too few to cancel
    broken = AnalyticAdder(59, adder.frequency, adder.phase_1, adder.phase_2, -adder.phase_out)
    assert broken.accuracy < 0.1
    fits = fit_neurons(adder.preactivations)
    np.testing.assert_array_equal(fits.frequency, adder.frequency)
    np.testing.assert_allclose(fits.explained_variance, 1)
    assert find_key_frequencies(fits) == list(range(1, 30))
    numbers = CyclicNumbers.of(AssignAddTask())
    related = output_phases(fits, adder.output_weights, numbers)
    np.testing.assert_allclose(related.phase_difference, 0, atol=1e-9)
    np.testing.assert_allclose(related.output_explained_variance, 1)
    wrong = output_phases(fits, broken.output_weights, numbers)
    assert concentration(related.phase_difference.values) == pytest.approx(1)
    assert concentration(wrong.phase_difference.values) < 0.2
