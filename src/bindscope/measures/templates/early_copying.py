"""The first steps of a model that learns to copy: what they change for symbols of training and for others.

>>> training = EarlyTraining.start(model, task, OptimizerConfig())
>>> training.update()
>>> training.read_change()[0]["seen"], training.accuracy()
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from bindscope.errors import BindscopeError
from bindscope.measures.templates.copying import (
    Directions,
    find_directions,
    product_of,
    read_update,
    span_fraction,
    step_of_product,
)
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer
from bindscope.tasks.templates import TemplateTask
from bindscope.theory.copying import CopyModel, identity_strength, predict_fraction, predict_ratio
from bindscope.training.config import OptimizerConfig
from bindscope.training.loss import batch_loss
from bindscope.training.optimizer import build_optimizer


@dataclass(eq=False)
class EarlyTraining:
    """A model at the start of its training, what it looked like, and the symbols that it is asked about."""

    model: Transformer
    task: TemplateTask
    optimizer: Any
    before: list[torch.Tensor]  # products of each layer, [head, d_model, d_model], on the CPU
    seen: list[Any]  # directions of each layer
    unseen: list[Any]

    @classmethod
    def start(cls, model: Transformer, task: TemplateTask, optimizer: OptimizerConfig) -> EarlyTraining:
        symbols = np.concatenate([np.array(part) for part in task.alphabets.values()])
        sequences = np.repeat(task.training_set().tokens[:1], len(symbols), axis=0)
        sequences[:, 0] = symbols
        directions = find_directions(model, sequences)
        trained = np.unique(task.training_set().tokens[:, 0])
        seen = np.flatnonzero(np.isin(symbols, trained))
        unseen = np.flatnonzero(np.isin(symbols, task.alphabets["test"]))
        return cls(
            model,
            task,
            build_optimizer(model, optimizer),
            [product_of(block.attention) for block in model.layers],
            [layer.of(seen) for layer in directions],
            [layer.of(unseen) for layer in directions],
        )

    @property
    def n_seen(self) -> int:
        return len(self.seen[0].read)

    def update(self) -> None:
        self.backward()
        self.optimizer.step()

    def backward(self) -> None:
        self.optimizer.zero_grad()
        batch_loss(self.model, self.task.training_set()).backward()

    def read_gradient(self) -> list[dict[str, float]]:
        """Readings of a small step down the gradient, layer by layer."""
        self.backward()
        changes = []
        for block in self.model.layers:
            named = block.attention.named_parameters()
            gradients = {name: weight.grad for name, weight in named if weight.grad is not None}
            changes.append(step_of_product(block.attention, gradients))
        return self._read(changes)

    def read_change(self) -> list[dict[str, float]]:
        """Readings of what changed since the start."""
        layers = zip(self.model.layers, self.before)
        return self._read([product_of(block.attention) - before for block, before in layers])

    def _read(self, changes: Sequence[torch.Tensor]) -> list[dict[str, float]]:
        rows = []
        for change, seen, unseen in zip(changes, self.seen, self.unseen):
            readings = asdict(read_update(change.sum(0), seen, unseen, np.random.default_rng(0)))
            readings["head_fraction"] = float(np.mean([span_fraction(head, seen)[0] for head in change]))
            rows.append(readings)
        return rows

    def accuracy(self) -> list[float]:
        """On training sequences and on all unseen symbols."""
        unseen = np.array(self.task.alphabets["test"])
        sequences = np.repeat(self.task.training_set().tokens[:1], len(unseen), axis=0)
        sequences[:, 0] = unseen
        found = []
        with torch.no_grad():
            for tokens in (self.task.training_set().tokens, sequences):
                answers = self.model(torch.from_numpy(tokens), at=torch.tensor([tokens.shape[1] - 1]))[:, 0].argmax(-1)
                found.append(float((answers.cpu().numpy() == tokens[:, 0]).mean()))
        return found


def predict_early(model: ModelConfig, n_symbols: int, rng: np.random.Generator) -> Mapping[str, float]:
    """The ratio after one gradient step in the simplified model: as expected, and in one such model."""
    if model.kv_heads != model.n_heads:
        raise BindscopeError(
            "the first step of copying is predicted for heads with values of their own; these share them."
        )
    gain = model.identity_gain if model.identity_vo else 0.0
    strength = identity_strength(model.d_model, model.n_heads, model.d_head, gain)
    return {
        "predicted_ratio": predict_ratio(n_symbols, model.d_model, strength),
        "simple_ratio": _simple_ratio(model, n_symbols, gain, rng),
        "predicted_fraction": predict_fraction(model.d_model, model.n_heads * model.d_head)
        if not gain
        else float("nan"),
    }


def _simple_ratio(model: ModelConfig, n_symbols: int, gain: float, rng: np.random.Generator) -> float:

    simple = CopyModel.draw(model.d_model, n_symbols, n_symbols, rng, model.n_heads, model.d_head)
    embeddings = normalize(torch.from_numpy(simple.embeddings), dim=1)
    seen, unseen = embeddings[:n_symbols], embeddings[n_symbols:]
    update = torch.from_numpy(simple.update(gain))
    return read_update(update, Directions(seen, seen), Directions(unseen, unseen), rng).ratio
