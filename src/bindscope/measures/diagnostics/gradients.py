"""How strong and how steep: signal-to-noise of minibatch gradients, and traces of the Fisher matrix and the Hessian."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from bindscope.measures.learning_coefficient.sampling import Landscape
from bindscope.tasks.task import Batch

PROBE_LENGTH = 1e-3  # how far Hutchinson's probes go along each weight


def signal_to_noise(gradients: Tensor) -> float:
    """|μ| / σ of minibatch gradients [batch, parameter], where σ² = E|g − μ|².

    The mean of K gradients is longer than μ, by σ²/K in its square; that is taken off, and what is left below 0 is 0.
    """
    n = len(gradients)
    mean = gradients.mean(0)
    noise = float((gradients - mean).square().sum()) / (n - 1)  # σ²
    signal = float(mean.square().sum()) - noise / n  # |μ|²
    return sqrt(max(signal, 0.0) / noise) if noise > 0 else float("inf")


def jackknife(gradients: Tensor) -> tuple[float, float]:
    """The signal-to-noise ratio and its standard error, by leaving out each minibatch in turn."""
    n = len(gradients)
    others = [signal_to_noise(gradients[torch.arange(n) != left_out]) for left_out in range(n)]
    return signal_to_noise(gradients), sqrt((n - 1) / n * float(np.square(np.array(others) - np.mean(others)).sum()))


def ratios_by_group(gradients: Tensor, groups: Mapping[str, Tensor]) -> dict[str, tuple[float, float]]:
    """The ratio and its standard error in each group of parameters, given as marks [parameter]."""
    return {name: jackknife(gradients[:, marks]) for name, marks in groups.items()}


def hessian_trace(landscape: Landscape, batch: int, n_probes: int, generator: torch.Generator) -> np.ndarray:
    """Hutchinson's estimates [probe] of the trace of the Hessian on one minibatch: E vᵀHv over v of ±1.

    Hv is half the difference of the gradients a little along v and against it, divided by that little: exact for a
    quadratic, and no second derivative of anything is needed.
    """
    start, found = landscape.start, []
    for _ in range(n_probes):
        probe = torch.randint(0, 2, start.shape, generator=generator).to(start) * 2 - 1
        both = torch.stack([start + PROBE_LENGTH * probe, start - PROBE_LENGTH * probe])
        _, gradients = landscape.losses_and_gradients(both, [batch, batch])
        found.append(float(probe @ (gradients[0] - gradients[1])) / (2 * PROBE_LENGTH))
    return np.array(found)


def fisher_trace(model: nn.Module, batch: Batch, generator: torch.Generator) -> float:
    """The trace of the Fisher matrix, E |∇ log p(y|x)|² over answers y that the model itself draws, by one gradient.

    For answers drawn from p the gradients of different answers are uncorrelated and have mean 0, so the square of their
    sum is, on average, the sum of their squares.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    device = parameters[0].device
    tokens, at = torch.from_numpy(batch.tokens).to(device), torch.from_numpy(batch.target_positions).to(device)
    logits = model(tokens, batch.layout, at).flatten(0, 1).float()  # [answer, output]
    uniform = torch.rand(logits.shape, generator=generator, dtype=torch.float64).to(device)
    drawn = (logits.detach().double() - torch.log(-torch.log(uniform))).argmax(-1)  # Gumbel's trick: y ~ softmax
    gradients = torch.autograd.grad(Categorical(logits=logits).log_prob(drawn).sum(), parameters, allow_unused=True)
    return sum(float(each.square().sum()) for each in gradients if each is not None) / len(logits)
