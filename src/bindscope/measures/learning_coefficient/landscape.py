"""The loss of a model over a flat vector of its weights, or of a part of them, for ``sample_chains``."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn

from bindscope.measures.learning_coefficient.examples import Examples
from bindscope.measures.learning_coefficient.parts import WHOLE, mark_part
from bindscope.training.loss import batch_loss, target_losses


class ModelLandscape:
    """A copy of a model whose weights are views into one vector, so that a chain writes them all at once.

    With a ``part``, chains move only its weights and the rest stays at w* (the weight-refined coefficient of arXiv 2410.02984).
    """

    def __init__(self, model: nn.Module, examples: Examples, part: str = WHOLE) -> None:
        self.examples = examples
        self._model = deepcopy(model).eval()
        device = next(self._model.parameters()).device
        marks = mark_part(self._model, part).to(device)
        self._where = None if marks.all() else marks.nonzero()[:, 0]  # [parameter]
        self._weights, self._gradient = _flatten(self._model, marks)
        self._start = self._weights.clone() if self._where is None else self._weights[self._where]
        self._counted = (
            None if examples.counted is None else [torch.from_numpy(marks).to(device) for marks in examples.counted]
        )

    @property
    def start(self) -> Tensor:
        return self._start

    @property
    def n_batches(self) -> int:
        return len(self.examples.batches)

    @property
    def n_examples(self) -> int:
        return self.examples.n_examples

    def losses(self, weights: Tensor, batches: Sequence[int]) -> np.ndarray:
        found = []
        for each, batch in zip(weights, batches, strict=True):
            self._write(each)
            with torch.no_grad():
                found.append(float(self._compute(batch)))
        return np.array(found)

    def losses_and_gradients(self, weights: Tensor, batches: Sequence[int]) -> tuple[np.ndarray, Tensor]:
        found, gradients = [], torch.empty_like(weights)
        for each, batch, gradient in zip(weights, batches, gradients, strict=True):
            self._write(each)
            self._gradient.zero_()
            with torch.enable_grad():
                loss = self._compute(batch)
                loss.backward()  # type: ignore[no-untyped-call]
            found.append(float(loss.detach()))
            gradient.copy_(self._gradient if self._where is None else self._gradient[self._where])
        return np.array(found), gradients

    def _write(self, weights: Tensor) -> None:
        if self._where is None:
            self._weights.copy_(weights)
        else:
            self._weights[self._where] = weights

    def _compute(self, index: int) -> Tensor:
        batch = self.examples.batches[index]
        if self._counted is None:
            return batch_loss(self._model, batch, self.examples.loss)  # type: ignore[arg-type]
        losses, marks = target_losses(self._model, batch), self._counted[index].to(torch.float32)  # [batch, target]
        if batch.weights is not None:
            marks = marks * torch.from_numpy(batch.weights).to(marks)
        return (losses * marks.to(losses)).sum() / marks.sum()


def _flatten(model: nn.Module, marks: Tensor) -> tuple[Tensor, Tensor]:
    """All weights of a model as one vector, and their gradient; each parameter becomes a view of both."""
    parameters = list(model.parameters())
    weights = torch.cat([parameter.detach().flatten() for parameter in parameters])
    gradient = torch.zeros_like(weights)
    first = 0
    for parameter in parameters:
        own = slice(first, first + parameter.numel())
        parameter.data = weights[own].view_as(parameter)
        parameter.requires_grad_(bool(marks[own].any()))
        parameter.grad = gradient[own].view_as(parameter) if parameter.requires_grad else None
        first = own.stop
    return weights, gradient
