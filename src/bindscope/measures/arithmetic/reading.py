"""Read a model's inner positions over many sums, a bounded part of them at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from bindscope.model.run import run, to_host
from bindscope.model.transformer import Transformer

ROWS_AT_ONCE = 256  # bounds memory, never changes a number


@torch.no_grad()
def read_sums(model: Transformer, tokens: np.ndarray, sites: Sequence[str]) -> list[np.ndarray]:
    """The values of ``sites`` over tokens [batch, 16], each [batch, …].

    >>> patterns, residual = read_sums(model, batch.tokens, ["L0.H0.pattern", "L1.resid_mid@15"])
    """
    parts: list[list[np.ndarray]] = [[] for _ in sites]
    for start in range(0, len(tokens), ROWS_AT_ONCE):
        trace = run(model, torch.from_numpy(tokens[start : start + ROWS_AT_ONCE]), sites)
        for part, site in zip(parts, sites):
            part.append(to_host(trace[site]).numpy())
    return [np.concatenate(part) for part in parts]
