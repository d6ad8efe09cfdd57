"""Two-variable sums of which training shows some rows as often as ever and the others never."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows (first variable, n1, n2) that are left when the others are removed for good; the second variable is free.

    At the published size there are 24,360 of them (ten first variables, 2436 trained pairs), and 244 are kept at a
    fraction of .01. A smaller fraction keeps some of the rows that a larger one keeps.
    """

    first: np.ndarray  # [kept] int64: index into ``starts``
    pairs: np.ndarray  # [kept] int64: index of the trained pair
    starts: np.ndarray  # [first variable] int64: where its operand rows begin
    n_followers: np.ndarray  # [first variable] int64: and how many there are, one for each second variable

    @staticmethod
    def draw(operands: np.ndarray, offset: int, n_pairs: int, fraction: float, seed: int) -> KeptRows:
        """Keep ``fraction`` of the rows; ``operands`` [row, 2] are those of two variables, listed from ``offset`` on."""
        _, starts, n_followers = np.unique(operands[:, 0], return_index=True, return_counts=True)
        n_rows = len(starts) * n_pairs
        kept = np.random.default_rng([seed, 2]).permutation(n_rows)[: round(fraction * n_rows)]
        return KeptRows(kept // n_pairs, kept % n_pairs, starts + offset, n_followers)

    def __len__(self) -> int:
        return len(self.first)

    def redraw(
        self, rng: np.random.Generator, rows: np.ndarray, pairs: np.ndarray, of_two: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The drawn operand rows and pairs [batch] with those ``of_two`` variables [batch] drawn again among the kept."""
        at = np.flatnonzero(of_two)
        if not len(at):
            return rows, pairs
        kept = rng.integers(len(self), size=len(at))
        first = self.first[kept]
        rows, pairs = rows.copy(), pairs.copy()
        rows[at] = self.starts[first] + (rng.random(len(at)) * self.n_followers[first]).astype(np.int64)
        pairs[at] = self.pairs[kept]
        return rows, pairs
