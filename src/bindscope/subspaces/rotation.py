"""Learn a subspace by what swapping it does: distributed alignment search (Geiger et al. 2024).

Gradient descent looks for the ``rank`` directions whose patching turns the base's answer into the counterfactual's;
the model stays as it is. The directions are the Q of a QR decomposition of free numbers, so they are orthonormal at
every step by construction, whatever the optimiser does.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.continuation import keep_runs
from bindscope.model.run import to_host
from bindscope.model.transformer import Transformer
from bindscope.subspaces.positions import Quality, find_columns
from bindscope.subspaces.stream import keep_base, read_stream
from bindscope.subspaces.subspace import Subspace, check_rank
from bindscope.tasks.binding import CounterfactualPairs

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class RotationPlan:
    """How long and how fast to learn. The learning rate falls to 0 along half a cosine."""

    n_steps: int = 100
    batch_size: int = 64
    lr: float = 0.1

    def __post_init__(self) -> None:
        if self.n_steps < 1 or self.batch_size < 1:
            raise BindscopeError("rotation: n_steps and batch_size must be at least 1.")


@dataclass(frozen=True, eq=False)
class LearnedRotation:
    """A learned subspace and the loss on the way to it."""

    subspace: Subspace
    losses: np.ndarray  # [step]: cross-entropy of the counterfactual answer after the swap, in nats


def learn_rotation(
    model: Transformer,
    pairs: CounterfactualPairs,
    *,
    layer: int,
    position: str,
    rank: int,
    generator: torch.Generator,
    of: Quality = "values",
    plan: RotationPlan | None = None,
    answers: Tensor | None = None,
    on_progress: Progress | None = None,
) -> LearnedRotation:
    """The subspace [rank, d_model] whose swap at one layer and position best carries the counterfactual answer.

    ``answers`` [pair] replace the counterfactual answers as what is trained for; shuffled ones are the control.

    >>> learned = learn_rotation(model, pairs, layer=4, position="chain", rank=10, generator=generator)
    >>> swap_stream(model, other_pairs, 4, find_columns(other_pairs, "chain"), learned.subspace.swap)
    """
    check_rank(rank, model.config.d_model)
    plan = plan or RotationPlan()
    frozen = copy.deepcopy(model).requires_grad_(False).eval()
    runs = _Swapped(frozen, pairs, layer, find_columns(pairs, position))
    wanted = torch.from_numpy(pairs.counterfactual_answers) if answers is None else answers
    free = torch.randn(model.config.d_model, rank, generator=generator).requires_grad_()
    optimizer = torch.optim.Adam([free], lr=plan.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, plan.n_steps)
    losses = []
    for step in range(plan.n_steps):
        rows = torch.randint(len(pairs), (plan.batch_size,), generator=generator)
        logits = runs.swap_along(orthonormal_columns(free), rows)  # [row, output]
        loss = F.cross_entropy(logits, wanted[rows])
        optimizer.zero_grad()
        if loss.requires_grad:  # else the swap changes none of these rows
            loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if on_progress:
            on_progress(step + 1, plan.n_steps)
    basis = orthonormal_columns(free.detach().double()).T.float().contiguous()
    return LearnedRotation(Subspace(basis, of, "learned rotation"), np.array(losses))


def orthonormal_columns(free: Tensor) -> Tensor:
    """The orthonormal columns [d_model, rank] that free numbers of that shape stand for, differentiably."""
    return torch.linalg.qr(free).Q


class _Swapped:
    """The base runs that every step continues, and what stands in both runs where they are swapped."""

    def __init__(self, model: Transformer, pairs: CounterfactualPairs, layer: int, columns: np.ndarray) -> None:
        self.model, self.layer, self.at = model, layer, pairs.colon_position
        self.tokens, self.columns = torch.from_numpy(pairs.base_tokens), torch.from_numpy(columns)
        self.source = read_stream(model, pairs.counterfactual_tokens, layer, columns)  # [pair, column, d_model]
        self.kept = keep_base(model, pairs, layer)

    def swap_along(self, basis: Tensor, rows: Tensor) -> Tensor:
        """Logits [row, output] of some pairs with their part along the basis [d_model, rank] swapped."""
        kept, index = self.kept, rows
        if kept is None:
            kept, index = keep_runs(self.model, self.tokens[rows], self.at, self.layer), torch.arange(len(rows))
        columns, source = self.columns[rows], self.source[rows]
        base = to_host(kept.read(self.layer, index, columns))  # [row, column, d_model]
        basis = basis.to(base.dtype)
        changed = base + (source - base) @ basis @ basis.T
        return to_host(kept.run_changed(self.layer, index, columns.masked_fill((source == base).all(-1), -1), changed))
