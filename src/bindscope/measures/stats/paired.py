"""Runs compared pair by pair: what differs between two of one seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bindscope.intervals import student_interval


@dataclass(frozen=True, eq=False)
class Paired:
    """How a number of a variant differs from that of the plain model, seed by seed."""

    variant: str
    seeds: tuple[int, ...]
    differences: np.ndarray  # [seed] the variant's − the plain model's
    changes: np.ndarray  # [seed] the same as a fraction of the plain model's

    @property
    def mean(self) -> float:
        return float(self.differences.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % of the mean over seeds (Student); the whole line where there are fewer than two."""
        return student_interval(self.differences) if len(self.seeds) > 1 else (-np.inf, np.inf)

    def describe(self) -> str:
        """``-1.20 [-1.90 to -0.50]``."""
        low, high = self.interval
        interval = f" [{low:+.2f} to {high:+.2f}]" if len(self.seeds) > 1 else ""
        return f"{self.mean:+.2f}{interval}"

    @property
    def change_interval(self) -> tuple[float, float]:
        return student_interval(self.changes) if len(self.seeds) > 1 else (-np.inf, np.inf)
