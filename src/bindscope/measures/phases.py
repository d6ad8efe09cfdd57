"""Phases of a run: stretches of training in which its evaluations read the same, and when a curve rises for good.

Each evaluation is read by itself first, by a criterion of the family. A phase is then a stretch of the run: of all ways to
cut it into the phases *in their order*, the one that contradicts the fewest readings. A phase is reported only if it held
for several evaluations running and most readings in it agree. What lies between two phases is a transition.

>>> readings = np.where(accuracy < 0.5, "guessing", "recall")
>>> phases_from_readings(readings, ("guessing", "recall"), steps, accuracy, persist=2, consistency=0.8)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

TRANSITION = "transition"


class Lasts(Protocol):
    """How long something must hold: at ``persist`` evaluations running, and at ``consistency`` of those after."""

    @property
    def persist(self) -> int: ...

    @property
    def consistency(self) -> float: ...


@dataclass(frozen=True)
class Lasting:
    """What holds at two evaluations running and at 80 % of all later ones."""

    persist: int = 2
    consistency: float = 0.8


@dataclass(frozen=True)
class Phase:
    """One stretch of a run, from the first to the last evaluation that reads as its name."""

    name: str
    first_step: int
    last_step: int
    accuracy: float  # the plateau: median over its evaluations
    n_evaluations: int
    consistency: float  # the fraction of those evaluations that read as its name


def phases_from_readings(
    readings: np.ndarray,
    names: Sequence[str],
    steps: np.ndarray,
    accuracy: np.ndarray,
    persist: int,
    consistency: float,
) -> list[Phase]:
    """The phases that ``readings [step]`` add up to, in the order of ``names``; those that do not last are left out."""
    found = []
    for name, (start, stop) in zip(names, _cut_in_order(readings, names), strict=True):
        phase = _phase_within(readings, name, start, stop, steps, accuracy, persist, consistency)
        if phase is not None:
            found.append(phase)
    return found


def find_transition(
    steps: Sequence[int] | np.ndarray,
    accuracy: Sequence[float] | np.ndarray,
    threshold: float = 0.9,
    criterion: Lasts | None = None,
) -> int | None:
    """The step at which a curve first reaches ``threshold`` and stays, or None.

    Staying means: at ``persist`` evaluations running, and at ``consistency`` of all later ones.
    """
    criterion = Lasting() if criterion is None else criterion
    reached = np.nan_to_num(np.asarray(accuracy, dtype=float), nan=-np.inf) >= threshold
    n_running = min(criterion.persist, len(reached))
    for start in np.flatnonzero(reached):
        running = reached[start : start + n_running]
        if len(running) == n_running and running.all() and reached[start:].mean() >= criterion.consistency:
            return int(np.asarray(steps)[start])
    return None


def _cut_in_order(readings: np.ndarray, names: Sequence[str]) -> list[tuple[int, int]]:
    """The cut into phases, in the order of their names, that contradicts the fewest readings; (start, stop) for each, possibly empty.

    A transition reading contradicts nothing. Of equally good cuts the one with the earliest boundaries is taken.
    """
    n = len(readings)
    agrees = np.stack([readings == name for name in names])  # [phase, step]
    score = np.zeros((len(names) + 1, n + 1), dtype=np.int64)  # [phase, stop]: most readings agreed with so far
    start_of = np.zeros((len(names) + 1, n + 1), dtype=np.int64)
    for index in range(len(names)):
        total = np.concatenate([[0], np.cumsum(agrees[index])])  # [stop]
        before = score[index] - total  # [start]: what starting the phase there is worth
        best_start = np.zeros(n + 1, dtype=np.int64)
        for stop in range(1, n + 1):
            best_start[stop] = stop if before[stop] > before[best_start[stop - 1]] else best_start[stop - 1]
        score[index + 1], start_of[index + 1] = total + before[best_start], best_start
    cuts, stop = [], n
    for index in reversed(range(len(names))):
        start = int(start_of[index + 1][stop])
        cuts.append((start, stop))
        stop = start
    return cuts[::-1]


def _phase_within(
    readings: np.ndarray,
    name: str,
    start: int,
    stop: int,
    steps: np.ndarray,
    accuracy: np.ndarray,
    persist: int,
    least_consistency: float,
) -> Phase | None:
    """The phase inside one piece of the cut, trimmed to its own readings, if it lasts."""
    own = np.flatnonzero(readings[start:stop] == name) + start
    if len(own) == 0:
        return None
    first, last = int(own[0]), int(own[-1])
    consistency = len(own) / (last - first + 1)
    lasts = first == 0 or _longest_run(own) >= persist
    if not lasts or consistency < least_consistency:
        return None
    return Phase(
        name=name,
        first_step=int(steps[first]),
        last_step=int(steps[last]),
        accuracy=round(float(np.median(accuracy[own])), 6),
        n_evaluations=last - first + 1,
        consistency=round(consistency, 6),
    )


def _longest_run(indices: np.ndarray) -> int:
    """How many of the sorted indices follow one another without a gap, at most."""
    breaks = np.flatnonzero(np.diff(indices) != 1)
    edges = np.concatenate([[-1], breaks, [len(indices) - 1]])
    return int(np.diff(edges).max())
