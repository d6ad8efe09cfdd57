"""The coefficient that chains give, with what says whether they may be trusted.

    λ̂ = nβ · (mean over draws of L(w) − L(w*))     (Lau et al., arXiv 2308.12108)

Each chain gives an estimate of its own, and the interval is Student's over chains. What else is reported:

- ``diverged``: the chains ran away, so there is no estimate. It is NaN then, whatever the other chains say.
- ``drift``: the second half of the counted draws minus the first, in units of λ̂. A chain that still moves has one.
- ``settled``: the drift is no more than a tenth of λ̂, or its interval over chains contains 0.
- ``negative``: the fraction of counted draws with a loss below L(w*). Many of them mean that w* is no minimum of this loss:
  the chains go downhill, and λ̂ describes the slope rather than a basin.
- ``rise``: λ̂/nβ, by how much the loss rises along the chains. Beyond ``FAR`` the chains have ``left``: what they sample is
  no longer the neighbourhood of w*, and λ̂ says little about it.
- ``equipartition``: (nβ ⟨(w − w*)·∇L⟩ + γ ⟨|w − w*|²⟩) / d. It is 1 for samples of the posterior, whatever the loss (integrate
  by parts), below 1 while chains still spread out, and above 1 where the step size is too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bindscope.intervals import student_interval
from bindscope.measures.learning_coefficient.sampling import Chains

SETTLED = 0.1  # the drift, as a fraction of λ̂, below which chains count as settled
FAR = 0.5  # nats that the loss may rise by along chains that are still near w*
MOST = 1.0  # nβ⟨L(w) − L(w*)⟩ per parameter beyond which no posterior of a convex loss can be: it is at most 1


@dataclass(frozen=True)
class Estimate:
    """λ̂ of one set of chains."""

    coefficient: float
    low: float
    high: float
    by_chain: tuple[float, ...]
    diverged: bool
    drift: float
    settled: bool
    negative: float
    equipartition: float
    rise: float
    n_parameters: int

    @property
    def left(self) -> bool:
        """Whether the chains are no longer near w*."""
        return self.rise > FAR


def estimate_coefficient(chains: Chains) -> Estimate:
    """λ̂ with its interval over chains; NaN where a chain diverged."""
    counted = chains.scale * chains.excess[:, chains.sampling.burn_in :]  # [chain, draw]
    if has_diverged(chains):
        nan = float("nan")
        return Estimate(nan, nan, nan, (nan,) * len(counted), True, nan, False, nan, nan, nan, chains.n_parameters)
    by_chain = counted.mean(1)
    low, high = student_interval(by_chain)
    drift, settled = _read_drift(counted)
    return Estimate(
        coefficient=float(by_chain.mean()),
        low=low,
        high=high,
        by_chain=tuple(map(float, by_chain)),
        diverged=False,
        drift=drift,
        settled=settled,
        negative=float((counted < 0).mean()),
        equipartition=_equipartition(chains),
        rise=float(by_chain.mean()) / chains.scale,
        n_parameters=chains.n_parameters,
    )


def has_diverged(chains: Chains) -> bool:
    """Whether any chain left the finite numbers, or has a mean loss that no posterior can have."""
    mean = chains.scale * chains.excess[:, chains.sampling.burn_in :].mean(1)  # [chain]
    return bool(~np.isfinite(mean).all() or (mean > MOST * chains.n_parameters).any())


def _read_drift(counted: np.ndarray) -> tuple[float, bool]:
    """The second half of the draws minus the first, as a fraction of the whole; and whether that is nothing."""
    half = counted.shape[1] // 2
    by_chain = counted[:, -half:].mean(1) - counted[:, :half].mean(1)
    size = max(abs(float(counted.mean())), 1e-12)
    low, high = student_interval(by_chain)
    drift = float(by_chain.mean()) / size
    return drift, bool(abs(drift) <= SETTLED or low <= 0 <= high)


def _equipartition(chains: Chains) -> float:
    counted = slice(chains.sampling.burn_in, None)
    by_loss = chains.scale * chains.pull[:, counted].mean()
    by_spring = chains.sampling.elasticity * chains.distance[:, counted].mean()
    return float((by_loss + by_spring) / chains.n_parameters)
