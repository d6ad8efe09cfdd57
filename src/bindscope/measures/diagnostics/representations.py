"""How alike, how spread out and how repetitive: numbers about activations and answers.

On the plateau, transformers have been seen to give the same token again and again and to make the residual streams of all output
positions nearly parallel (arXiv 2506.13688, "repetition bias" and "representation collapse").
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def mean_pairwise_cosine(vectors: Tensor) -> Tensor:
    """The mean cosine between two different vectors of [..., vector, d]: 1 where all are parallel, about 0 where they are random.

    Σ_{i≠j} u_i·u_j = |Σ u_i|² − n for unit vectors u, so no pair is looked at by itself.
    """
    units = torch.nn.functional.normalize(vectors.double(), dim=-1)
    n = units.shape[-2]
    return (units.sum(-2).square().sum(-1) - units.square().sum((-1, -2))) / (n * (n - 1))


def participation_ratio(vectors: Tensor) -> float:
    """(Σ λ)² / Σ λ² of the eigenvalues of the covariance of [vector, d]: how many directions vary alike.

    >>> participation_ratio(torch.randn(100_000, 8, generator=torch.Generator().manual_seed(0)))   # 8, nearly
    """
    centred = vectors.double() - vectors.double().mean(0)
    covariance = centred.T @ centred / len(centred)
    total = covariance.trace()
    return float(total**2 / covariance.square().sum()) if total > 0 else float("nan")


def attention_entropy(pattern: Tensor) -> Tensor:
    """The entropy [...] in nats of each row of attention weights [..., key]."""
    return torch.special.entr(pattern.double()).sum(-1)


def repetition(answers: np.ndarray) -> float:
    """How often two answers are the same: of one example where it has several, [batch, target], else of two examples.

    >>> repetition(np.array([[5, 5, 5], [1, 2, 3]]))
    0.5
    """
    rows = answers if answers.shape[1] > 1 else answers.T  # [group, answer]
    n = rows.shape[1]
    same = (rows[:, :, None] == rows[:, None, :]).sum((1, 2)) - n  # [group]
    return float(same.mean() / (n * (n - 1)))
