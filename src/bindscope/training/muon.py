"""Muon (Keller Jordan, 2024) in single precision: momentum whose matrix is made nearly orthogonal before each step.

``torch.optim.Muon`` iterates in bfloat16, for which most CPUs have no fast product; on one core a step of a small model
then takes several times as long as its gradient. The steps are otherwise the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic that is steepest at zero
N_ITERATIONS = 5


class Muon(torch.optim.Optimizer):
    """Steps of spectral norm near ``lr`` for matrices, with Nesterov momentum and decoupled weight decay.

    >>> Muon([matrix], lr=0.02, momentum=0.95, weight_decay=0.01).step()
    """

    def __init__(self, params: Iterable[Tensor], lr: float, momentum: float, weight_decay: float) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)

    def _move(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(gradient)
        average = state["momentum_buffer"].lerp_(gradient, 1 - group["momentum"])
        direction = orthogonalise(gradient.lerp(average, group["momentum"]))
        n_rows, n_columns = parameter.shape
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.add_(direction, alpha=-group["lr"] * max(1.0, n_rows / n_columns) ** 0.5)


def orthogonalise(matrix: Tensor) -> Tensor:
    """Nearly U·Vᵀ of the matrix U·S·Vᵀ: five Newton–Schulz iterations bring singular values to between 0.7 and 1.2.

    >>> torch.linalg.svdvals(orthogonalise(torch.randn(64, 32)))
    """
    a, b, c = COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(N_ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
