"""Langevin chains around some weights w*, and the loss along them.

The chains sample the local posterior of Lau et al. (arXiv 2308.12108, section 4),

    p(w) ∝ exp(−nβ L(w) − γ/2 |w − w*|²),     β = 1/log n,

by stochastic gradient Langevin dynamics: a step of size ε goes against the gradient of a minibatch and adds noise,

    w ← w − ε/2 (nβ ∇L_b(w) + γ (w − w*)) + √ε (ξ + ξ')/2,     ξ, ξ' ~ N(0, 1),

where ξ is the noise of the step before and ξ' is new. With this averaged noise (Leimkuhler and Matthews 2013) a quadratic
loss is sampled exactly at any stable step size, which plain noise √ε ξ' does only as ε → 0; ``averaged=False`` is the plain
one, for comparison.

>>> chains = sample_chains(landscape, Sampling(), torch.Generator().manual_seed(0))
>>> chains.excess.shape   # L_b(w) − L_b(w*) of each draw
(4, 40)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.run import to_host

OnProgress = Callable[[int, int], None]


class Landscape(Protocol):
    """A loss over weights, given as the mean over minibatches that are numbered from 0."""

    @property
    def start(self) -> Tensor:
        """w*, [parameter]."""
        ...

    @property
    def n_batches(self) -> int: ...

    @property
    def n_examples(self) -> int:
        """How many examples the minibatches hold together: n."""
        ...

    def losses(self, weights: Tensor, batches: Sequence[int]) -> np.ndarray:
        """The loss [chain] of the weights [chain, parameter] of several chains, each on its own minibatch."""
        ...

    def losses_and_gradients(self, weights: Tensor, batches: Sequence[int]) -> tuple[np.ndarray, Tensor]:
        """The same with the gradients [chain, parameter], which the next call may overwrite."""
        ...


@dataclass(frozen=True)
class Sampling:
    """How chains are drawn; docs/development.md says how the defaults were chosen."""

    chains: int = 4
    draws: int = 40  # in each chain, those before it settles included
    burn_in: int = 16  # draws at the beginning of each chain that are not counted
    step_size: float = 2e-4  # ε
    elasticity: float = 1000.0  # γ: how strongly a chain is drawn back to w*
    averaged: bool = True  # the noise of Leimkuhler and Matthews; False: plain
    scale: float | None = None  # nβ; None: n/log n

    def __post_init__(self) -> None:
        if self.chains < 2:
            raise BindscopeError(f"chains: an interval needs at least 2, got {self.chains}.")
        if not 0 <= self.burn_in <= self.draws - 4:
            raise BindscopeError(f"burn_in: must leave 4 of the {self.draws} draws to count, got {self.burn_in}.")
        for name in ("step_size", "elasticity"):
            if getattr(self, name) < 0 or (name == "step_size" and self.step_size == 0):
                raise BindscopeError(f"{name}: must be positive, got {getattr(self, name)}.")

    def scale_for(self, n_examples: int) -> float:
        """nβ: what a loss is multiplied by in the posterior."""
        return n_examples / log(n_examples) if self.scale is None else self.scale

    def changed(self, **settings: float | int | bool | None) -> Sampling:
        """The same with other settings; those that are None stay."""
        return replace(self, **{name: value for name, value in settings.items() if value is not None})  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Chains:
    """What was seen along the chains, at each draw; not finite from where a chain ran away."""

    excess: np.ndarray  # [chain, draw]: L_b(w) − L_b(w*) on the draw's own minibatch
    distance: np.ndarray  # [chain, draw]: |w − w*|²
    pull: np.ndarray  # [chain, draw]: (w − w*)·∇L_b(w)
    n_parameters: int
    scale: float  # nβ
    sampling: Sampling


def sample_chains(
    landscape: Landscape, sampling: Sampling, generator: torch.Generator, on_progress: OnProgress | None = None
) -> Chains:
    """Chains from w* on; L(w*) is computed once on each minibatch that is read, and subtracted on the same one."""
    start, scale = landscape.start, sampling.scale_for(landscape.n_examples)
    order = _order_batches(landscape.n_batches, sampling.chains, sampling.draws, generator)  # [draw, chain]
    read = np.unique(order)
    at_start = np.zeros(landscape.n_batches)  # [batch]: L_b(w*)
    at_start[read] = [landscape.losses(start[None], [batch])[0] for batch in read.tolist()]
    weights = start.repeat(sampling.chains, 1)  # [chain, parameter]
    noise = _draw_noise(weights, generator)
    seen = np.full((3, sampling.chains, sampling.draws), np.nan)  # [quantity, chain, draw]
    for draw, batches in enumerate(order):
        losses, gradients = landscape.losses_and_gradients(weights, batches.tolist())
        moved = weights - start
        seen[:, :, draw] = (
            losses - at_start[batches], to_host(moved.square().sum(1)), to_host((moved * gradients).sum(1))
        )  # fmt: skip
        if not np.isfinite(seen[:, :, draw]).any(1).all():
            break  # no chain is left
        fresh = _draw_noise(weights, generator)
        mixed = (noise + fresh) / 2 if sampling.averaged else fresh
        drift = scale * gradients + sampling.elasticity * moved
        weights, noise = weights - 0.5 * sampling.step_size * drift + sqrt(sampling.step_size) * mixed, fresh
        if on_progress is not None:
            on_progress(draw + 1, sampling.draws)
    excess, distance, pull = seen
    return Chains(excess, distance, pull, n_parameters=len(start), scale=scale, sampling=sampling)


def _order_batches(n_batches: int, n_chains: int, n_draws: int, generator: torch.Generator) -> np.ndarray:
    """Which minibatch each draw of each chain reads, [draw, chain]: all in a random order, and again."""
    n_reads = n_draws * n_chains
    orders = [torch.randperm(n_batches, generator=generator) for _ in range(-(-n_reads // n_batches))]
    return torch.cat(orders)[:n_reads].view(n_draws, n_chains).numpy()


def _draw_noise(like: Tensor, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=generator, dtype=like.dtype).to(like.device)
