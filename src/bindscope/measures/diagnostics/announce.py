"""Which number announces the end of a plateau: it leaves the range it had on the plateau's first half, before the answers do.

The range of a number over the first half of a plateau is from its least to its most there. It *departs* at the first later step at
which it lies outside. Numbers that only fluctuate depart too: of k + m exchangeable values, one of the m later ones lies outside
the range of the first k with probability

    1 − k(k − 1) / ((k + m)(k + m − 1)),

for both extremes of all values must be among the first k for none to. That is the base rate a departure has to be read against. A
number that drifts departs always, whatever follows; so the same rule is applied to the plateau's first half by itself, where
nothing follows (``fires_early``).

>>> announce(steps, values, plateau=(200, 1000), answers_depart=1100).lead
300
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bindscope.errors import BindscopeError


@dataclass(frozen=True)
class Departure:
    """When a number leaves the range it had on the plateau's first half; ``step`` is None where it does not."""

    step: int | None
    low: float  # that range
    high: float
    n_range: int  # how many steps make it


@dataclass(frozen=True)
class Announcement:
    """A departure beside that of the answers, and how often a number that only fluctuates would announce it too."""

    departure: Departure
    lead: (
        int | None
    )  # steps by which it is earlier than the answers; below 0 where it is later, None where it does not depart
    base_rate: float  # NaN where no step was measured in which it could have departed
    n_before: int  # steps between the first half and the departure of the answers: chances to depart by accident
    fires_early: (
        bool | None
    )  # whether it leaves the range of the plateau's first quarter in the second; None: too few steps

    @property
    def announces(self) -> bool:
        return self.lead is not None and self.lead > 0


def announce(steps: np.ndarray, values: np.ndarray, plateau: tuple[int, int], answers_depart: int) -> Announcement:
    """Whether ``values`` over ``steps`` leave their range before ``answers_depart``."""
    departure = find_departure(steps, values, plateau)
    known = np.asarray(steps)[np.isfinite(np.asarray(values, dtype=float))]
    before = int(((known > _middle(plateau)) & (known < answers_depart)).sum())
    lead = None if departure.step is None else answers_depart - departure.step
    rate = base_rate(departure.n_range, before) if before else float("nan")
    return Announcement(departure, lead, rate, before, fires_early(steps, values, plateau))


def fires_early(steps: np.ndarray, values: np.ndarray, plateau: tuple[int, int]) -> bool | None:
    """Whether the rule fires where nothing follows: in the second quarter of the plateau, after the range of the first."""
    middle = int(_middle(plateau))
    try:
        departure = find_departure(steps, values, (plateau[0], middle))
    except BindscopeError:
        return None
    return departure.step is not None and departure.step <= middle


def find_departure(steps: np.ndarray, values: np.ndarray, plateau: tuple[int, int]) -> Departure:
    """The first step behind the plateau's first half at which ``values`` lie outside their range there."""
    steps, values = np.asarray(steps), np.asarray(values, dtype=float)
    known = np.isfinite(values)
    steps, values = steps[known], values[known]
    early = (steps >= plateau[0]) & (steps <= _middle(plateau))
    if early.sum() < 2:
        raise BindscopeError(
            f"departure: fewer than two steps were measured from step {plateau[0]} to {_middle(plateau):g}."
        )
    low, high = float(values[early].min()), float(values[early].max())
    outside = (steps > _middle(plateau)) & ((values < low) | (values > high))
    return Departure(int(steps[outside][0]) if outside.any() else None, low, high, int(early.sum()))


def base_rate(n_range: int, n_later: int) -> float:
    """How often a number that only fluctuates leaves its range of ``n_range`` values in ``n_later`` further ones.

    >>> base_rate(2, 1)
    0.6666666666666667
    """
    total = n_range + n_later
    return 1 - n_range * (n_range - 1) / (total * (total - 1))


def _middle(plateau: tuple[int, int]) -> float:
    return (plateau[0] + plateau[1]) / 2
