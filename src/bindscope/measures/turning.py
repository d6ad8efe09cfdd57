"""When a curve over training turns: the step at which it is half way from its plateau to its end.

Curves of different measures have different units and directions. Each is read on a scale of its own, 0 at its median over
the plateau and 1 at its median over the last quarter of its later steps; it turns where it reaches ½ and stays. So any two
can be asked which turns first.

>>> find_turn(steps, accuracy, plateau=(200, 600))
Turn(step=800, low=None, high=None, start=0.55, end=1.0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bindscope.measures.phases import find_transition

HALF_WAY = 0.5
LAST_PART = 0.25  # of the values after the plateau that make the end


@dataclass(frozen=True)
class Turn:
    """Where a curve is half way from its plateau to its end; ``step`` is None where it does not change."""

    step: int | None
    low: int | None  # where the end of its interval that is ahead turns, and the one that is behind
    high: int | None
    start: float
    end: float


def find_turn(
    steps: np.ndarray,
    values: np.ndarray,
    plateau: tuple[int, int] | None = None,
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
) -> Turn:
    """The turn of a curve; without a ``plateau`` (its first and last step) its first value stands for it.

    A curve does not change if the interval of its end overlaps that of its plateau; without intervals, if its end lies
    within the least and most of the plateau.
    """
    steps, values = np.asarray(steps), np.asarray(values, dtype=float)
    known = np.isfinite(values)
    steps, values = steps[known], values[known]
    ends = None if low is None or high is None else (np.asarray(low, float)[known], np.asarray(high, float)[known])
    if len(steps) < 2:
        return Turn(None, None, None, float(values[0]) if len(values) else float("nan"), float("nan"))
    on_plateau = _on_plateau(steps, plateau)
    at_end = _at_end(steps, on_plateau)
    start, end = float(np.median(values[on_plateau])), float(np.median(values[at_end]))
    if not _changes(values, ends, on_plateau, at_end, start, end):
        return Turn(None, None, None, start, end)
    later = np.arange(len(steps)) >= np.flatnonzero(on_plateau)[0]
    step, *others = (
        find_transition(steps[later], (each[later] - start) / (end - start), HALF_WAY)
        for each in (values, *(ends if ends is not None else ()))
    )
    step = int(steps[-1]) if step is None else step  # it is there at its last step alone
    spread = [other for other in others if other is not None]
    if len(spread) < 2:
        return Turn(step, None, None, start, end)
    return Turn(step, min(spread), max(spread), start, end)


def _on_plateau(steps: np.ndarray, plateau: tuple[int, int] | None) -> np.ndarray:
    """Which steps are the plateau's; the one nearest to it where none was measured on it."""
    if plateau is None:
        return np.asarray(steps == steps[0])
    inside = (steps >= plateau[0]) & (steps <= plateau[1])
    return inside if inside.any() else np.asarray(steps == steps[np.abs(steps - plateau[1]).argmin()])


def _at_end(steps: np.ndarray, on_plateau: np.ndarray) -> np.ndarray:
    n_later = len(steps) - 1 - np.flatnonzero(on_plateau)[-1]
    return np.arange(len(steps)) >= len(steps) - max(1, round(LAST_PART * n_later))


def _changes(
    values: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray] | None,
    on_plateau: np.ndarray,
    at_end: np.ndarray,
    start: float,
    end: float,
) -> bool:
    if start == end:
        return False
    if ends is None:
        return not values[on_plateau].min() <= end <= values[on_plateau].max()
    (low, high), (later_low, later_high) = (
        tuple(float(np.median(each[part])) for each in ends) for part in (on_plateau, at_end)
    )
    return later_low > high or later_high < low
