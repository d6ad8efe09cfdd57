"""A two-layer network that adds, written down instead of trained, and whether trained neurons obey its one rule.

After Gromov 2023: neuron j squares cos(2πk n1/p + φ1) + cos(2πk n2/p + φ2), with a frequency k and two random phases of
its own, and gives cos(2πk q/p + φ1 + φ2) to output q. The cross term of the square, cos(2πk(n1 + n2)/p + φ1 + φ2), is in
step with that for q = n1 + n2 in every neuron; all other terms have random phases and cancel as neurons become many.

>>> AnalyticAdder.draw(59, 512, np.random.default_rng(0)).accuracy
1.0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from bindscope.measures.arithmetic.cyclic import CyclicNumbers
    from bindscope.measures.arithmetic.forms import SumForms


@dataclass(frozen=True, eq=False)
class AnalyticAdder:
    """Gromov's network for sums modulo ``modulus``."""

    modulus: int
    frequency: np.ndarray  # [neuron]
    phase_1: np.ndarray
    phase_2: np.ndarray
    phase_out: np.ndarray

    @classmethod
    def draw(cls, modulus: int, n_neurons: int, rng: np.random.Generator) -> AnalyticAdder:
        """Each frequency about equally often, phases at random, and the output's phase their sum."""
        if modulus < 3:
            raise BindscopeError(f"Fourier components need a modulus of at least 3, got {modulus}.")
        frequency = rng.permutation(np.resize(np.arange(1, (modulus - 1) // 2 + 1), n_neurons))
        phase_1, phase_2 = rng.uniform(-np.pi, np.pi, (2, n_neurons))
        return cls(modulus, frequency, phase_1, phase_2, phase_1 + phase_2)

    @property
    def preactivations(self) -> np.ndarray:
        """[n1, n2, neuron]."""
        return self._wave(self.phase_1)[:, None] + self._wave(self.phase_2)

    @property
    def output_weights(self) -> np.ndarray:
        """[neuron, output]."""
        return self._wave(self.phase_out).T

    @property
    def logits(self) -> np.ndarray:
        """[n1, n2, output], with the square as activation."""
        return self.preactivations**2 @ self.output_weights

    @property
    def accuracy(self) -> float:
        """The share of all pairs whose largest logit is n1 + n2."""
        numbers = np.arange(self.modulus)
        return float((self.logits.argmax(-1) == (numbers[:, None] + numbers) % self.modulus).mean())

    def _wave(self, phase: np.ndarray) -> np.ndarray:
        """[number, neuron]."""
        return np.cos(2 * np.pi * np.outer(np.arange(self.modulus), self.frequency) / self.modulus + phase)


def output_weights(forms: SumForms) -> np.ndarray:
    """[neuron, number]: what each neuron of the last MLP adds to each logit, without what it adds to all of them."""
    weights = forms.down @ forms.unembed
    return weights - weights.mean(axis=1, keepdims=True)


def output_phases(fits: xr.Dataset, weights: np.ndarray, numbers: CyclicNumbers) -> xr.Dataset:
    """Over ``neuron``: the phase of its output weights [neuron, number] at the frequency that it was fitted with
    (``phase_out``), the share of their variance at that frequency (``output_explained_variance``), and
    ``phase_difference``, phase_out − phase_1 − phase_2 in (−π, π], which is 0 in the analytic network.
    """
    placed = weights[:, numbers.answer].T  # [position, neuron]
    waves = np.fft.rfft(placed - placed.mean(axis=0), axis=0)
    chosen = waves[fits.frequency.values, np.arange(placed.shape[1])]
    total = np.maximum((abs(np.fft.fft(placed - placed.mean(axis=0), axis=0)) ** 2).sum(axis=0), 1e-300)
    difference = np.angle(chosen) - fits.phase_1.values - fits.phase_2.values
    return xr.Dataset(
        {
            "phase_out": ("neuron", np.angle(chosen)),
            "output_explained_variance": ("neuron", 2 * abs(chosen) ** 2 / total),
            "phase_difference": ("neuron", np.angle(np.exp(1j * difference))),
        },
        {"neuron": fits.neuron.values},
    )


def concentration(angles: np.ndarray) -> float:
    """The length of the mean of unit vectors at these angles: 1 if all are the same, about n^−½ if they are random."""
    return float(abs(np.exp(1j * np.asarray(angles)).mean())) if len(angles) else float("nan")
