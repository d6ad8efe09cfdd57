"""Evaluations of a run on modular addition with known phases and spikes: addition, a spike at 5,350, another from 14,500 to 16,000."""

from __future__ import annotations

from typing import Any

import numpy as np

from bindscope.tasks.assign_add import SPLIT_NAMES

N = 2000
DENSE = np.arange(0, 20001, 100)
UNEVEN = np.array([1, 401, 1001, 2001, 3001, 5001, 5301, 5401, 6001, 10001, 13001, 14501, 14901, 16001, 20001])
PLATEAUS = {  # start, after addition, after the first spike, after the second
    "0tr": (0.02, 1.0, 1.0, 1.0),
    "0add": (0.02, 0.97, 0.99, 0.99),
    "1tr": (0.02, 0.45, 0.99, 1.0),
    "1add": (0.02, 0.3, 0.97, 0.99),
    "1var": (0.02, 0.25, 0.7, 1.0),
    "2tr": (0.02, 0.35, 0.92, 0.99),
    "2add": (0.02, 0.25, 0.9, 0.98),
    "2var1": (0.02, 0.3, 0.7, 0.99),
    "2var2": (0.02, 0.05, 0.45, 0.99),
}


def simulate_sums(steps: np.ndarray, seed: int = 0, second: bool = True, first: bool = True) -> np.ndarray:
    """Accuracy [step, split]; without ``first`` or ``second`` the run stays where it was before that spike."""
    steps = np.asarray(steps, dtype=float)
    progress = np.clip(steps / 400, 0, 1)
    if first:
        progress = progress + np.clip((steps - 5310) / 80, 0, 1)
    if first and second:
        progress = progress + np.clip((steps - 14500) / 1500, 0, 1)
    levels = np.array([PLATEAUS[split] for split in SPLIT_NAMES])
    curves = np.stack([np.interp(progress, np.arange(4), row) for row in levels], axis=1)
    return np.random.default_rng(seed).binomial(N, curves) / N


def sums_records(accuracy: np.ndarray, steps: np.ndarray) -> list[dict[str, Any]]:
    """The same as a run's records, with both halves of the held-out splits."""
    records = []
    for step, row in zip(np.asarray(steps).tolist(), accuracy):
        splits: dict[str, Any] = {}
        for split, fraction in zip(SPLIT_NAMES, row.tolist()):
            splits[split] = {"n": N, "accuracy": fraction, "chance": 0.03, "loss": 4.0 - 3 * fraction, "mean_rank": 1.0}
            if split.endswith("add"):
                halves = {"swap_seen": min(fraction + 0.01, 1.0), "both_held": max(fraction - 0.02, 0.0)}
                splits[split] |= {half: {"n": N // 2, "accuracy": value} for half, value in halves.items()}
        records.append({"step": step, "loss": 1.0, **splits, "watched": dict(zip(SPLIT_NAMES, row.tolist()))})
    return records
