"""Draw items by weight, many at once and in constant time each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class WeightedChoice:
    """Walker's alias method: every item keeps part of an equal share and leaves the rest of it to one other item.

    >>> WeightedChoice.of(np.array([1.0, 0.0, 3.0])).draw(np.random.default_rng(0), 5)
    array([2, 2, 0, 0, 2])
    """

    keep: np.ndarray  # [item] float64: the part of its equal share that an item keeps
    alias: np.ndarray  # [item] int64: who gets the rest

    @staticmethod
    def of(weights: np.ndarray) -> WeightedChoice:
        fractions = weights * (len(weights) / weights.sum())  # mean 1
        keep, alias = np.ones(len(weights)), np.arange(len(weights))
        poor, rich = np.flatnonzero(fractions < 1).tolist(), np.flatnonzero(fractions >= 1).tolist()
        while poor and rich:
            item, giver = poor.pop(), rich[-1]
            keep[item], alias[item] = fractions[item], giver
            fractions[giver] -= 1 - fractions[item]
            if fractions[giver] < 1:
                poor.append(rich.pop())
        for item in poor:  # rounding left these a hair below 1; an item of weight 0 never keeps anything
            keep[item] = float(weights[item] > 0)
        return WeightedChoice(keep, alias)

    def draw(self, rng: np.random.Generator, n_draws: int) -> np.ndarray:
        """Item indices [draw] int64."""
        draws = rng.random(n_draws) * len(self.keep)
        items = draws.astype(np.int64)
        draws -= items
        return np.where(draws < self.keep.take(items), items, self.alias.take(items))
