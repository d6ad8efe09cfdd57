"""The number that training makes small."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bindscope.errors import BindscopeError
from bindscope.tasks.task import Batch, supervise_every_token


def batch_loss(model: nn.Module, batch: Batch, loss: Literal["answer", "all"] = "answer") -> Tensor:
    """The mean loss over the targets of a batch: cross-entropy for tokens, squared error for real labels.

    ``all`` also asks every column for the token that follows it. A target counts as often as its weight says, so a
    batch of programs that share a prefix has the loss of the separate sequences.

    >>> batch_loss(model, task.sample_batch(np.random.default_rng(0), 64)).backward()
    """
    if loss == "all":
        if _has_real_targets(batch):
            raise BindscopeError("training.loss: 'all' needs tokens as answers, and this task's answers are numbers.")
        batch = supervise_every_token(batch)
    losses = target_losses(model, batch)  # [batch, target]
    if batch.weights is None:
        return losses.mean()
    weights = torch.from_numpy(batch.weights).to(losses)  # [target]
    return (losses @ weights).mean() / weights.sum()


def target_losses(model: nn.Module, batch: Batch) -> Tensor:
    """The loss of each target of a batch, [batch, target], before weights and means."""
    outputs = _outputs_at_targets(model, batch)  # [batch, target, output]
    targets = torch.from_numpy(batch.targets).to(outputs.device)  # [batch, target]
    if _has_real_targets(batch):
        return (outputs.squeeze(-1) - targets.to(outputs.dtype)).square()
    losses = functional.cross_entropy(outputs.flatten(0, 1), targets.flatten(), reduction="none")
    return losses.view_as(targets)


@torch.no_grad()
def answer_accuracy(model: nn.Module, batch: Batch) -> float:
    """The fraction of a batch's answers that are the model's likeliest output."""
    outputs = _outputs_at_targets(model, batch)  # [batch, target, output]
    return float((outputs.argmax(-1).cpu() == torch.from_numpy(batch.targets)).float().mean())


def _has_real_targets(batch: Batch) -> bool:
    return batch.targets.dtype.kind == "f"


def _outputs_at_targets(model: nn.Module, batch: Batch) -> Tensor:
    """Each column is asked once, also when several targets read it (as the last token of a shared prefix is)."""
    device = next(model.parameters()).device
    columns, inverse = np.unique(batch.target_positions, return_inverse=True)
    tokens = torch.from_numpy(batch.tokens).to(device)  # [batch, position]
    at = None if len(columns) == tokens.shape[1] else torch.from_numpy(columns).to(device)
    outputs = model(tokens, batch.layout, at)  # [batch, column, output]
    if outputs.dtype in (torch.bfloat16, torch.float16):
        outputs = outputs.float()  # a loss is summed in whole precision
    if np.array_equal(inverse, np.arange(outputs.shape[1])):
        return outputs
    return outputs.index_select(1, torch.from_numpy(inverse).to(device))  # [batch, target, output]
