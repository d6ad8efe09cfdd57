"""Which additions a model may see in training, and which are kept from it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class PairSplit:
    """All modulus² ordered pairs (n1, n2), divided into trained and held out.

    ``ordered`` keeps int(fraction · modulus²) ordered pairs, so 1+3 can be trained while 3+1 is held out;
    ``both_orders`` keeps int(fraction · modulus(modulus+1)/2) unordered pairs, so a pair and its swap go together.
    The study's own split is ``PairSplit(59, 0.7, "ordered", 42)``: 2436 trained pairs and 1045 held out, of which
    723 have their swap in training.
    """

    modulus: int
    fraction: float
    kind: Literal["ordered", "both_orders"]
    seed: int

    @cached_property
    def is_trained(self) -> np.ndarray:
        """[n1, n2] bool."""
        numbers = range(self.modulus)
        trained = np.zeros((self.modulus, self.modulus), dtype=bool)  # [n1, n2]
        candidates = [(n1, n2) for n1 in numbers for n2 in numbers if self.kind == "ordered" or n1 <= n2]
        n_kept = int(self.fraction * len(candidates))
        for n1, n2 in random.Random(self.seed).sample(candidates, n_kept):
            trained[n1, n2] = True
            if self.kind == "both_orders":
                trained[n2, n1] = True
        return trained

    @cached_property
    def trained(self) -> np.ndarray:
        """[pair, 2] int64: the pairs that training draws from."""
        return np.ascontiguousarray(np.argwhere(self.is_trained))

    @cached_property
    def held_out(self) -> np.ndarray:
        """[pair, 2] int64: the pairs that training never shows."""
        return np.ascontiguousarray(np.argwhere(~self.is_trained))
