"""Weights that training leaves as they are.

>>> train(model, loader, config, evaluate=evaluate, frozen={"embed.weight": torch.ones(40, 64, dtype=torch.bool)})
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from bindscope.errors import BindscopeError


class Frozen:
    """Some entries of a model's parameters, held at their present values: they have no gradient, and whatever an
    optimizer does to them all the same (weight decay, momentum) is undone."""

    def __init__(self, model: nn.Module, marks: Mapping[str, Tensor]) -> None:
        parameters = dict(model.named_parameters())
        if unknown := marks.keys() - parameters.keys():
            raise BindscopeError(f"frozen: the model trains no '{min(unknown)}'.")
        placed = [(parameters[name], mark.to(parameters[name].device)) for name, mark in marks.items()]
        self._held = [(parameter, mark, parameter.detach()[mark]) for parameter, mark in placed]

    def mask_gradients(self) -> None:
        """Before the norm of the gradient is taken, so that it is that of the weights that move."""
        for parameter, mark, _ in self._held:
            if parameter.grad is not None:
                parameter.grad.masked_fill_(mark, 0.0)

    @torch.no_grad()
    def restore(self) -> None:
        """After the optimizer's step: the held values again, to the bit."""
        for parameter, mark, values in self._held:
            parameter[mark] = values
