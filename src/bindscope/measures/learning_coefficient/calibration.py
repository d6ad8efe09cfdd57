"""Chains on losses whose learning coefficient is known: what the estimator gives where the answer is no matter of opinion.

>>> for row in calibrate(): print(row.name, row.known, row.estimate.coefficient)
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from torch import Tensor

from bindscope.measures.learning_coefficient.estimate import Estimate, estimate_coefficient
from bindscope.measures.learning_coefficient.sampling import Landscape, OnProgress, Sampling, sample_chains
from bindscope.theory.learning_coefficients import linear_network_coefficient, polynomial_coefficient

N_EXAMPLES = 100_000  # n of all known losses, so that nβ is about 8,700
POLYNOMIAL = Sampling(chains=16, draws=6000, burn_in=2000, step_size=2e-4, elasticity=1.0)
NETWORK = Sampling(chains=16, draws=6000, burn_in=2000, step_size=4e-5, elasticity=10.0)


class Polynomial:
    """½ Σ w_i^{p_i} around 0."""

    n_batches = 1

    def __init__(self, powers: Sequence[int], n_examples: int = N_EXAMPLES) -> None:
        self.powers, self.n_examples = torch.tensor(powers), n_examples
        self.start = torch.zeros(len(powers), dtype=torch.float64)

    def losses(self, weights: Tensor, batches: Sequence[int]) -> np.ndarray:
        return np.asarray(0.5 * (weights**self.powers).sum(1))

    def losses_and_gradients(self, weights: Tensor, batches: Sequence[int]) -> tuple[np.ndarray, Tensor]:
        return self.losses(weights, batches), 0.5 * self.powers * weights ** (self.powers - 1)


class LinearNetwork:
    """½ |W_M ⋯ W_1 − T|², the loss under inputs of unit covariance, around matrices that pass ``rank`` directions on."""

    n_batches = 1

    def __init__(self, widths: Sequence[int], rank: int, n_examples: int = N_EXAMPLES) -> None:
        self.n_examples = n_examples
        self.shapes = [(after, before) for before, after in itertools.pairwise(widths)]
        matrices = [torch.zeros(shape, dtype=torch.float64) for shape in self.shapes]
        for matrix in matrices:
            matrix[range(rank), range(rank)] = 1.0
        self.start = torch.cat([matrix.flatten() for matrix in matrices])
        self.truth = self._multiply(self.start[None])

    def losses(self, weights: Tensor, batches: Sequence[int]) -> np.ndarray:
        return self._losses(weights).detach().numpy()

    def losses_and_gradients(self, weights: Tensor, batches: Sequence[int]) -> tuple[np.ndarray, Tensor]:
        with torch.enable_grad():
            asked = weights.detach().requires_grad_()
            losses = self._losses(asked)
            (gradients,) = torch.autograd.grad(losses.sum(), asked)
        return losses.detach().numpy(), gradients

    def _losses(self, weights: Tensor) -> Tensor:
        return 0.5 * (self._multiply(weights) - self.truth).square().sum((1, 2))

    def _multiply(self, weights: Tensor) -> Tensor:
        """The product of the matrices of each chain, [chain, output, input]."""
        parts = weights.split([rows * columns for rows, columns in self.shapes], 1)
        matrices = [part.view(-1, *shape) for part, shape in zip(parts, self.shapes)]
        return reduce(lambda product, matrix: matrix @ product, matrices)


@dataclass(frozen=True)
class Calibrated:
    """One known loss: its coefficient, and what chains give."""

    name: str
    n_parameters: int
    known: float
    estimate: Estimate


POLYNOMIALS: tuple[tuple[int, ...], ...] = ((2,) * 10, (2, 2, 4, 4), (4,) * 4, (2, 4, 6, 8))
NETWORKS: tuple[tuple[tuple[int, ...], int], ...] = (
    ((4, 5), 2), ((3, 2, 3), 2), ((4, 3, 4), 1), ((4, 4, 4, 4), 2), ((3, 3, 3), 0),
)  # fmt: skip


def calibrate(seed: int = 0, on_progress: OnProgress | None = None) -> list[Calibrated]:
    """Every known loss; about half a minute on one core."""
    cases = [known_polynomial(powers) for powers in POLYNOMIALS] + [known_network(*shape) for shape in NETWORKS]
    rows = []
    for done, (name, landscape, known, sampling) in enumerate(cases, start=1):
        chains = sample_chains(landscape, sampling, torch.Generator().manual_seed(seed))
        rows.append(Calibrated(name, len(landscape.start), known, estimate_coefficient(chains)))
        if on_progress is not None:
            on_progress(done, len(cases))
    return rows


def known_polynomial(powers: Sequence[int]) -> tuple[str, Landscape, float, Sampling]:
    regular = set(powers) == {2}
    name = f"½ Σ w² in {len(powers)} parameters" if regular else f"½ Σ w^p, p = {', '.join(map(str, powers))}"
    return name, Polynomial(powers), polynomial_coefficient(powers), POLYNOMIAL


def known_network(widths: Sequence[int], rank: int) -> tuple[str, Landscape, float, Sampling]:
    name = f"linear network {'-'.join(map(str, widths))}, rank {rank}"
    return name, LinearNetwork(widths, rank), linear_network_coefficient(widths, rank), NETWORK
