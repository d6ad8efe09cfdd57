"""All ways to position assignments among PADs, few enough (1895) to be listed and drawn from by weight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from math import factorial, prod

import numpy as np

from bindscope.tasks.assign_add.choice import WeightedChoice
from bindscope.tasks.assign_add.sequence import MAX_ASSIGNMENTS, N_POSITIONS, N_PREFIX

# What a column can hold: a PAD, the variable or the number of an assignment, or one of the four tokens of the sum.
PAD_SOURCE = 0
VARIABLE_SOURCES = slice(1, 1 + MAX_ASSIGNMENTS)
NUMBER_SOURCES = slice(VARIABLE_SOURCES.stop, VARIABLE_SOURCES.stop + MAX_ASSIGNMENTS)
SUM_SOURCES = slice(NUMBER_SOURCES.stop, NUMBER_SOURCES.stop + N_POSITIONS - N_PREFIX)
N_SOURCES = SUM_SOURCES.stop


@dataclass(frozen=True, eq=False)
class Placements:
    """Where a sequence's assignments and PADs stand.

    The number of assignments is uniform from the fewest needed to the most there can be; each PAD falls into one of the
    gaps before, between and after them, independently and uniformly; assignments 0 and 1 (those of the operands) stand
    anywhere among the others, which keep their order.
    """

    n_assignments: np.ndarray  # [placement] int64
    sources: np.ndarray  # [placement, position] int64: what each column holds
    at_least_one: WeightedChoice
    at_least_two: WeightedChoice

    def draw(self, rng: np.random.Generator, needs_two: np.ndarray) -> np.ndarray:
        """Indices of placements [batch], with two assignments at least where they are needed."""
        any_number = self.at_least_one.draw(rng, len(needs_two))
        return np.where(needs_two, self.at_least_two.draw(rng, len(needs_two)), any_number)


@cache
def list_placements(most: int) -> Placements:
    """Every placement of 1 to ``most`` assignments with its probability."""
    counts, sources, weights = [], [], []
    for count in range(1, most + 1):
        n_pads = N_PREFIX - 2 * count
        orders = list(_assignment_orders(count))
        for gaps in _compositions(n_pads, count + 1):
            n_ways = factorial(n_pads) // prod(map(factorial, gaps))  # for the PADs to fall into these gaps
            for order in orders:
                counts.append(count)
                sources.append(_source_row(order, gaps))
                weights.append(n_ways / (count + 1) ** n_pads / len(orders))
    one, two = WeightedChoice.of(np.array(weights)), WeightedChoice.of(np.array(weights) * (np.array(counts) >= 2))
    return Placements(np.array(counts), np.array(sources), one, two)


def _source_row(order: list[int], gaps: tuple[int, ...]) -> list[int]:
    row = [PAD_SOURCE] * gaps[0]
    for assignment, n_pads in zip(order, gaps[1:]):
        row += [VARIABLE_SOURCES.start + assignment, NUMBER_SOURCES.start + assignment, *[PAD_SOURCE] * n_pads]
    return [*row, *range(SUM_SOURCES.start, SUM_SOURCES.stop)]


def _assignment_orders(count: int) -> Iterator[list[int]]:
    """Orders of ``count`` assignments: any positions for the first two, the others from left to right."""
    for positions in permutations(range(count), min(count, 2)):
        others = iter(range(2, count))
        yield [positions.index(at) if at in positions else next(others) for at in range(count)]


def _compositions(total: int, n_parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write ``total`` as an ordered sum of ``n_parts`` numbers ≥ 0."""
    if n_parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, n_parts - 1):
            yield (first, *rest)
