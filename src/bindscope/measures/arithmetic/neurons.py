"""Neurons as Fourier components: the pre-activation of each neuron of the last MLP over all pairs, and the cosines it is made of.

The published form is a·[cos(2πk n1/p + φ1) + cos(2πk n2/p + φ2)] around a mean. Fourier components of different frequency, and of
different operands, are orthogonal over all pairs, so the best fit is read off two Fourier transforms:
with amplitudes A1 and A2 of frequency k in the means over the other operand, free amplitudes explain (A1² + A2²)/2 of
the variance and equal ones (A1 + A2)²/4, reached at a = (A1 + A2)/2.

>>> h = preactivation(forms, 70)   # [n1, n2]
>>> fit = fit_neuron(h)
>>> fit.frequency, fit.explained_variance, fit.values - h
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.arithmetic.cyclic import CyclicNumbers

if TYPE_CHECKING:
    from bindscope.measures.arithmetic.forms import SumForms


FITS = 0.8  # explained variance from which a neuron's pre-activation fits its Fourier component
EXAMPLES: Mapping[str, float] = {"best": 1.0, "median": 0.5, "tenth percentile": 0.1}  # which neurons are shown whole


@dataclass(frozen=True)
class NeuronFit:
    """One neuron's pre-activation as cosines of one frequency around its mean."""

    modulus: int
    mean: float
    frequency: int
    amplitude: float  # a, the same for both operands
    phase_1: float
    phase_2: float
    explained_variance: float  # of the pre-activation, with equal amplitudes
    amplitude_1: float  # … and each operand's own
    amplitude_2: float
    free_explained_variance: float

    @property
    def values(self) -> np.ndarray:
        """[n1, n2]: the published form, a·[cos(2πk n1/p + φ1) + cos(2πk n2/p + φ2)] and the mean."""
        angles = 2 * np.pi * self.frequency * np.arange(self.modulus) / self.modulus
        return self.mean + self.amplitude * (np.cos(angles + self.phase_1)[:, None] + np.cos(angles + self.phase_2))


def preactivation(forms: SumForms, neuron: int) -> np.ndarray:
    """[n1, n2]: what the circuit alone, OV2 e_n1 + OV2 e_n2, gives to one neuron of the last MLP.

    >>> preactivation(forms, 70).shape
    (59, 59)
    """
    n_neurons = forms.up.shape[1]
    if not 0 <= neuron < n_neurons:
        raise BindscopeError(f"neuron {neuron}: the last MLP has neurons 0 to {n_neurons - 1}.")
    part = forms.numbers @ forms.ov2 @ forms.up[:, neuron]  # [number]
    return part[:, None] + part


def preactivations(forms: SumForms) -> np.ndarray:
    """The same of every neuron: [n1, n2, neuron]."""
    parts = forms.numbers @ forms.ov2 @ forms.up  # [number, neuron]
    return parts[:, None] + parts


def fit_neuron(values: np.ndarray) -> NeuronFit:
    """The best cosines for one pre-activation [n1, n2]."""
    fits = fit_neurons(values[:, :, None]).isel(neuron=0)
    numbers = {
        name: float(fits[name])
        for name in (
            "mean", "amplitude", "phase_1", "phase_2", "explained_variance", "amplitude_1", "amplitude_2",
            "free_explained_variance",
        )
    }  # fmt: skip
    return NeuronFit(modulus=len(values), frequency=int(fits.frequency), **numbers)


def fit_neurons(values: np.ndarray, numbers: CyclicNumbers | None = None) -> xr.Dataset:
    """The best cosines for every pre-activation in [n1, n2, neuron], as named arrays over ``neuron``.

    ``numbers`` puts the operands on a circle where the operator is not + (or to see what chance fits). The frequency is
    that of the best fit with equal amplitudes. A neuron that is constant has no frequency to speak of: its explained
    variance is NaN.
    """
    if numbers is not None:
        values = numbers.arrange(values)
    modulus, n_neurons = len(values), values.shape[2]
    if modulus < 3:
        raise BindscopeError(f"Fourier components need a modulus of at least 3, got {modulus}.")
    components_1, components_2 = (
        _components(values.mean(axis=other)) for other in (1, 0)
    )  # [frequency, neuron] complex
    variance = values.var(axis=(0, 1))
    known = variance > 1e-12 * np.maximum(values.mean(axis=(0, 1)) ** 2, 1e-300)
    equal = (abs(components_1) + abs(components_2)) ** 2 / 4
    best = equal.argmax(axis=0)
    at_best = (best, np.arange(n_neurons))
    first, second = components_1[at_best], components_2[at_best]

    def fraction(explained: np.ndarray) -> np.ndarray:
        return np.where(known, explained / np.where(known, variance, 1), np.nan)

    variables = {
        "frequency": best + 1,
        "mean": values.mean(axis=(0, 1)),
        "variance": variance,
        "amplitude": (abs(first) + abs(second)) / 2,
        "amplitude_1": abs(first),
        "amplitude_2": abs(second),
        "phase_1": np.angle(first),
        "phase_2": np.angle(second),
        "explained_variance": fraction(equal[at_best]),
        "free_explained_variance": fraction((abs(first) ** 2 + abs(second) ** 2) / 2),
    }
    dataset = xr.Dataset(
        {name: ("neuron", values) for name, values in variables.items()}, {"neuron": np.arange(n_neurons)}
    )
    dataset.attrs = {"modulus": modulus, "ordered_by": numbers.ordered_by if numbers is not None else "value"}
    return dataset


def fitted_preactivations(fits: xr.Dataset, numbers: CyclicNumbers | None = None) -> np.ndarray:
    """Every neuron's published form over [position of n1, position of n2, neuron]."""
    modulus = int(fits.attrs["modulus"]) if numbers is None else numbers.modulus
    angles = 2 * np.pi * np.outer(np.arange(modulus), fits.frequency.values) / modulus  # [position, neuron]
    first = np.cos(angles + fits.phase_1.values)
    second = np.cos(angles + fits.phase_2.values)
    values: np.ndarray = fits["mean"].values + fits.amplitude.values * (first[:, None] + second)
    return values


def _components(profile: np.ndarray) -> np.ndarray:
    """Amplitude and phase of each frequency 1 … ⌊(m − 1)/2⌋ in [position, neuron]: A·exp(iφ) for A·cos(2πk n/m + φ)."""
    modulus = len(profile)
    components: np.ndarray = np.fft.rfft(profile, axis=0)[1 : (modulus - 1) // 2 + 1] * 2 / modulus
    return components
