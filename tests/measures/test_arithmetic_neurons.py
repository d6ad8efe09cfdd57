"""The fit of neurons against brute force, planted Fourier components, and the reading on the released model."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.cyclic import CyclicNumbers
from bindscope.measures.arithmetic.forms import SumForms
from bindscope.measures.arithmetic.literal_sums import run_literal_sums
from bindscope.measures.arithmetic.neurons import (
    fit_neuron,
    fit_neurons,
    fitted_preactivations,
    preactivation,
    preactivations,
)
from bindscope.model.convert import load_checkpoint
from bindscope.model.transformer import Transformer
from bindscope.studies.framework.presets import find_preset
from bindscope.tasks.assign_add import AssignAddTask

CONFIG = find_preset("assign-add").config
SHARED = Path(os.environ.get("BINDSCOPE_SHARED", Path(__file__).parents[3] / "shared"))
FINAL = SHARED / "data" / "assign_and_add" / "model_state_dict.pth"
NOTES = SHARED / "papers" / "assign-and-add.md"


def brute_force(values: np.ndarray, equal: bool) -> tuple[int, float]:
    """Least squares at every frequency; with equal amplitudes by trying many of them with every pair of phases."""
    p = len(values)
    n1, n2 = np.indices(values.shape).reshape(2, -1)
    target = values.reshape(-1) - values.mean()
    found = []
    for k in range(1, (p - 1) // 2 + 1):
        angles = [2 * np.pi * k * n / p for n in (n1, n2)]
        basis = np.stack([component(angle) for angle in angles for component in (np.cos, np.sin)], axis=1)
        if not equal:
            solution = np.linalg.lstsq(basis, target, rcond=None)[0]
            rests = [((target - basis @ solution) ** 2).sum()]
        else:
            phases = np.linspace(0, 2 * np.pi, 36, endpoint=False)
            components = [[np.cos(angle + phase) for phase in phases] for angle in angles]
            rests = []
            for first, second in product(*components):
                form = first + second
                rests.append(((target - form * (form @ target) / (form @ form)) ** 2).sum())
        found.append(1 - min(rests) / (target**2).sum())
    return int(np.argmax(found)) + 1, float(max(found))


@pytest.fixture(scope="module")
def mixed() -> np.ndarray:
    """[n1, n2, neuron] over 7 numbers: a Fourier component of frequency 1, 2 or 3 with unequal amplitudes, and noise."""
    rng = np.random.default_rng(0)
    n = 2 * np.pi * np.arange(7) / 7
    components = [
        rng.uniform(1, 2) * np.cos(k * n + rng.uniform(0, 6))[:, None] + np.cos(k * n + rng.uniform(0, 6))
        for k in (1, 2, 3)
    ]
    return np.stack(components, axis=-1) + rng.normal(0, 0.3, (7, 7, 3)) + 5


def test_free_amplitudes_explain_what_least_squares_does(mixed):
    fits = fit_neurons(mixed)
    for neuron in range(3):
        frequency, explained = brute_force(mixed[..., neuron], equal=False)
        assert fits.frequency[neuron] == frequency
        assert float(fits.free_explained_variance[neuron]) == pytest.approx(explained, abs=1e-12)


def test_equal_amplitudes_explain_as_much_as_the_best_of_all_phases(mixed):
    fits = fit_neurons(mixed)
    for neuron in range(3):
        frequency, explained = brute_force(mixed[..., neuron], equal=True)
        assert fits.frequency[neuron] == frequency
        found = float(fits.explained_variance[neuron])
        assert explained <= found + 1e-12
        assert found == pytest.approx(explained, abs=0.008)  # the phases tried are 10° apart
        assert found < float(fits.free_explained_variance[neuron])


def test_what_the_fit_says_is_what_its_values_leave(mixed):
    fits = fit_neurons(mixed)
    values = fitted_preactivations(fits)
    left = ((mixed - values) ** 2).mean(axis=(0, 1)) / mixed.var(axis=(0, 1))
    np.testing.assert_allclose(1 - left, fits.explained_variance, atol=1e-12)
    one = fit_neuron(mixed[..., 1])
    np.testing.assert_allclose(one.values, values[..., 1], atol=1e-12)
    assert one.explained_variance == pytest.approx(float(fits.explained_variance[1]))


def test_a_planted_component_is_found_whole():
    n = 2 * np.pi * 11 * np.arange(59) / 59
    fit = fit_neuron(3 + 0.5 * (np.cos(n + 1.2)[:, None] + np.cos(n - 2)))
    assert (fit.frequency, fit.explained_variance) == (11, pytest.approx(1))
    assert (fit.mean, fit.amplitude, fit.phase_1, fit.phase_2) == pytest.approx((3, 0.5, 1.2, -2))


def test_a_constant_neuron_fits_nothing():
    assert np.isnan(fit_neuron(np.full((5, 5), 7.0)).explained_variance)


@pytest.mark.parametrize("operator", ["+", "-", "*"])
def test_places_add_where_numbers_are_combined(operator):
    task = AssignAddTask(modulus=11, operator=operator)
    numbers = CyclicNumbers.of(task)
    combined = task.sequences.combine(numbers.first[:, None], numbers.second)
    np.testing.assert_array_equal(combined, numbers.answer[numbers.sums])


def test_a_component_over_differences_and_over_logarithms_is_found_on_its_circle():
    for operator in ("-", "*"):
        numbers = CyclicNumbers.of(AssignAddTask(modulus=11, operator=operator))
        angles = 2 * np.pi * 3 * np.arange(numbers.modulus) / numbers.modulus
        by_value = np.zeros((11, 11, 1))
        by_value[numbers.first[:, None], numbers.second, 0] = np.cos(angles + 0.3)[:, None] + np.cos(angles + 0.9)
        fits = fit_neurons(by_value, numbers).isel(neuron=0)
        assert float(fits.explained_variance) == pytest.approx(1)
        assert (int(fits.frequency), float(fits.phase_1), float(fits.phase_2)) == (3, *map(pytest.approx, (0.3, 0.9)))


@pytest.mark.parametrize(("change", "said"), [({"gated": True}, "MLPs are gated"), ({"parallel": True}, "in parallel")])
def test_models_whose_neurons_do_other_things_are_refused(change, said):
    model = Transformer(replace(CONFIG.model, **change))
    with pytest.raises(BindscopeError, match=said):
        run_literal_sums(model, CONFIG.task)


def test_products_modulo_no_prime_are_refused():
    with pytest.raises(BindscopeError, match="only a prime"):
        CyclicNumbers.of(AssignAddTask(modulus=12, operator="*"))


def test_a_group_whose_order_matters_is_no_circle():
    with pytest.raises(BindscopeError, match="no circle"):
        CyclicNumbers.of(AssignAddTask(modulus=10, operator="dihedral"))


def test_the_circuits_preactivation_is_linear_in_what_the_mlp_is_given():
    forms = SumForms.of(Transformer(CONFIG.model, torch.Generator().manual_seed(1)), CONFIG.task)
    given = (forms.numbers[3] + forms.numbers[40]) @ forms.ov2
    np.testing.assert_allclose(preactivation(forms, 70)[3, 40], given @ forms.up[:, 70])
    np.testing.assert_allclose(preactivations(forms)[..., 70], preactivation(forms, 70))
    with pytest.raises(BindscopeError, match="0 to 511"):
        preactivation(forms, 512)


@pytest.mark.skipif(not (FINAL.is_file() and NOTES.is_file()), reason="the released model is not on this machine")
def test_neuron_70_of_the_released_model_is_the_published_cosine():
    """The printed number is that of the model run on literal sums behind a prefix of PADs, with free amplitudes."""
    frequency, printed = re.search(
        r"neuron 70 is a k=(\d+) cosine \(explained variance (\.\d+)\)", NOTES.read_text()
    ).groups()
    sums = run_literal_sums(load_checkpoint(FINAL, activation="relu", norm="none"), AssignAddTask())
    fit = fit_neuron(sums.pre[..., 70])
    assert fit.frequency == int(frequency)
    assert f"{fit.free_explained_variance:.3f}".removeprefix("0") == printed
