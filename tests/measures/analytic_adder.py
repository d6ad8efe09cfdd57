"""A two-layer network that adds, written down instead of trained (Gromov 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
        frequency = rng.permutation(np.resize(np.arange(1, (modulus - 1) // 2 + 1), n_neurons))
        phase_1, phase_2 = rng.uniform(-np.pi, np.pi, (2, n_neurons))
        return cls(modulus, frequency, phase_1, phase_2, phase_1 + phase_2)

    @property
    def preactivations(self) -> np.ndarray:
        """[n1, n2, neuron]."""
        return self._component(self.phase_1)[:, None] + self._component(self.phase_2)

    @property
    def output_weights(self) -> np.ndarray:
        """[neuron, output]."""
        return self._component(self.phase_out).T

    @property
    def logits(self) -> np.ndarray:
        """[n1, n2, output], with the square as activation."""
        return self.preactivations**2 @ self.output_weights

    @property
    def accuracy(self) -> float:
        """The fraction of all pairs whose largest logit is n1 + n2."""
        numbers = np.arange(self.modulus)
        return float((self.logits.argmax(-1) == (numbers[:, None] + numbers) % self.modulus).mean())

    def _component(self, phase: np.ndarray) -> np.ndarray:
        """[number, neuron]."""
        return np.cos(2 * np.pi * np.outer(np.arange(self.modulus), self.frequency) / self.modulus + phase)
