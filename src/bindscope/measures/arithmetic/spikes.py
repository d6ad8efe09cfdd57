"""What happens to a model of modular addition while it learns: its phases, and the spikes between them.

A *spike* is a rise in a split of sums with variables that is far larger than sampling noise, quick, and lasting, at a time
when sums of two numbers are answered already (so that better addition cannot be the reason). The *phases* are named by
what is mastered: addition (two numbers), assignment (variables where training shows them), refinement (every position).

>>> [(spike.number, spike.before_step, spike.after_step) for spike in find_spikes(steps, accuracy, splits)]
[(1, 5301, 5401), (2, 14501, 16001)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.measures.phases import TRANSITION, Phase, phases_from_readings

SUM_PHASES = ("addition", "assignment", "refinement")
NUMBERS = ("0tr",)
TRAINED = ("1tr", "2tr")  # variables where training shows them
RESTRICTED = ("1var", "2var1", "2var2")  # … and where it never does


@dataclass(frozen=True)
class SumPhaseCriterion:
    """When an evaluation reads as addition, assignment or refinement, and how long a reading must last."""

    learned: float = 0.9  # a split counts as answered from here on
    assigned: float = (
        0.8  # … those with variables in trained positions already from here on: the spike overshoots slowly
    )
    persist: int = 2  # a phase holds at this many evaluations running
    consistency: float = 0.8  # … and at this fraction of those from its first to its last

    def __post_init__(self) -> None:
        _check_fractions(self, "learned", "assigned", "consistency")
        if self.persist < 1:
            raise BindscopeError(f"phase criterion: persist must be at least 1, got {self.persist}.")

    def describe(self) -> dict[str, str]:
        """The criterion in words for a table or a caption."""
        return {
            "addition": (
                f"Sums of two trained numbers are answered ({100 * self.learned:.0f} % or more), sums with variables in trained "
                f"positions are not (below {100 * self.assigned:.0f} % with one or with two)."
            ),
            "assignment": (
                f"Sums with one and with two variables in trained positions are answered ({100 * self.assigned:.0f} % or more); "
                f"somewhere a variable in a position that training never shows is not (below {100 * self.learned:.0f} %)."
            ),
            "refinement": f"Every split is answered ({100 * self.learned:.0f} % or more).",
            "any": (
                f"A phase once entered holds at {self.persist} evaluations running, and at {100 * self.consistency:.0f} % of "
                "those from its first to its last."
            ),
        }


@dataclass(frozen=True)
class SpikeCriterion:
    """What makes a rise a spike."""

    rise: float = (
        0.25  # of the split that rises most; one of four restricted positions answered again moves 1var by this
    )
    window: int = 1500  # steps within which it happens: as long as the second spike of the paper lasts
    noise: float = 5.0  # standard errors of the difference that it exceeds
    learned: float = 0.9  # sums of two numbers are answered by then
    lasting: float = 0.8  # fraction of earlier evaluations below its middle, and of later ones above
    core: float = 2 / 3  # a spike is placed where this fraction of the rise takes the fewest steps
    pace: float = 0.25  # … and there it rises by this per 1,000 steps or faster; what is slower is a climb
    joining: float = 0.1  # a split jumps with the others if it rises by this

    def __post_init__(self) -> None:
        _check_fractions(self, "rise", "learned", "lasting", "core", "joining")
        if self.window < 1 or self.noise < 0 or self.pace < 0:
            raise BindscopeError(
                "spike criterion: window must be at least 1, noise and pace at least 0, got "
                f"{self.window}, {self.noise} and {self.pace}."
            )

    def describe(self) -> str:
        """The criterion in words for a table or a caption."""
        return (
            f"A split with variables rises by {100 * self.rise:.0f} % or more within {self.window:,} steps, more than "
            f"{self.noise:g} standard errors, after two numbers are added ({100 * self.learned:.0f} %); {100 * self.lasting:.0f} % of "
            "the evaluations before lie below the middle of the rise and as many of those after above it. "
            f"Its steepest part ({100 * self.core:.0f} % of it) rises by {100 * self.pace:.0f} % per 1,000 steps or faster."
        )


@dataclass(frozen=True)
class Spike:
    """One spike: the evaluations around the steepest part of the rise, and the splits that jumped there."""

    number: int  # 1, 2, … in order of time
    before_step: int
    after_step: int
    splits: tuple[str, ...]
    size: float  # by how much the split that jumped most rose between these two evaluations


def find_spikes(
    steps: Sequence[int] | np.ndarray,
    accuracy: np.ndarray,
    splits: Sequence[str],
    n_examples: int | None = None,
    criterion: SpikeCriterion | None = None,
) -> list[Spike]:
    """The spikes in ``accuracy [step, split]``, in order of time; of overlapping rises the largest counts.

    ``n_examples`` is the size of each split, for the noise; without it rises are taken as exact.
    """
    criterion = SpikeCriterion() if criterion is None else criterion
    steps, accuracy = _check_curves(steps, accuracy, splits)
    watched = [index for index, split in enumerate(splits) if not split.startswith("0")]
    start = _first_added(accuracy, splits, criterion.learned)
    found: list[tuple[int, int]] = []
    blocked = np.zeros(max(len(steps) - 1, 0), dtype=bool)  # [gap between neighbouring evaluations]
    for rise in _list_rises(steps, accuracy, watched, start, n_examples, criterion):
        if not blocked[rise.first : rise.last].any():
            blocked[rise.first : rise.last] = True
            first, last = _shrink(steps, accuracy[:, rise.split], rise, criterion.core)
            if (
                accuracy[last, rise.split] - accuracy[first, rise.split]
                >= criterion.pace * (steps[last] - steps[first]) / 1000
            ):
                found.append((first, last))
    found.sort()
    return [
        _describe_spike(number, steps, accuracy, splits, watched, ends, n_examples, criterion)
        for number, ends in enumerate(found, start=1)
    ]


def detect_sum_phases(
    steps: Sequence[int] | np.ndarray,
    accuracy: np.ndarray,
    splits: Sequence[str],
    criterion: SumPhaseCriterion | None = None,
) -> list[Phase]:
    """The phases of a run on modular addition in order; those it never had, or not for long enough, are left out.

    A phase's accuracy is the mean over all splits.
    """
    criterion = SumPhaseCriterion() if criterion is None else criterion
    steps, accuracy = _check_curves(steps, accuracy, splits)
    if not len(steps) or not {*NUMBERS, *TRAINED, *RESTRICTED} <= set(splits):
        return []
    readings = read_sum_evaluations(accuracy, splits, criterion)
    return phases_from_readings(readings, SUM_PHASES, steps, accuracy.mean(1), criterion.persist, criterion.consistency)


def read_sum_evaluations(accuracy: np.ndarray, splits: Sequence[str], criterion: SumPhaseCriterion) -> np.ndarray:
    """What each evaluation reads as by itself: a phase's name, or ``transition``. ``[step]`` of text."""
    column = {split: accuracy[:, index] for index, split in enumerate(splits)}

    def lowest(names: Sequence[str]) -> np.ndarray:
        return np.min([column[name] for name in names], axis=0)

    adds = lowest(NUMBERS) >= criterion.learned
    assigns = adds & (lowest(TRAINED) >= criterion.assigned)
    everywhere = adds & (accuracy.min(1) >= criterion.learned)
    return np.select([everywhere, assigns, adds], ["refinement", "assignment", "addition"], TRANSITION)


@dataclass(frozen=True)
class _Rise:
    size: float
    first: int  # index of an evaluation
    last: int
    split: int


def _list_rises(
    steps: np.ndarray,
    accuracy: np.ndarray,
    watched: Sequence[int],
    start: int,
    n_examples: int | None,
    criterion: SpikeCriterion,
) -> list[_Rise]:
    """Every rise that is one by the criterion, the largest first, of equal ones the shortest."""
    rises = []
    for first in range(start, len(steps) - 1):
        stop = int(np.searchsorted(steps, steps[first] + criterion.window, side="right"))
        change = accuracy[first + 1 : stop, watched] - accuracy[first, watched]  # [last, split]
        for later, split in np.argwhere(change >= criterion.rise):
            last = first + 1 + int(later)
            rise = _Rise(float(change[later, split]), first, last, watched[int(split)])
            ends = accuracy[[first, last], rise.split]
            if rise.size > criterion.noise * _error(ends, n_examples) and _lasts(
                accuracy[:, rise.split], rise, criterion
            ):
                rises.append(rise)
    return sorted(rises, key=lambda rise: (-round(rise.size, 9), steps[rise.last] - steps[rise.first], rise.first))


def _error(ends: np.ndarray, n_examples: int | None) -> float:
    """The standard error of the difference of two fractions of ``n_examples`` each."""
    return 0.0 if n_examples is None else float(np.sqrt((ends * (1 - ends)).sum() / n_examples))


def _lasts(curve: np.ndarray, rise: _Rise, criterion: SpikeCriterion) -> bool:
    middle = (curve[rise.first] + curve[rise.last]) / 2
    before, after = curve[: rise.first + 1] < middle, curve[rise.last :] > middle
    return bool(before.mean() >= criterion.lasting and after.mean() >= criterion.lasting)


def _shrink(steps: np.ndarray, curve: np.ndarray, rise: _Rise, core: float) -> tuple[int, int]:
    """The evaluations (first, last) inside a rise between which ``core`` of it takes the fewest steps."""
    inside = [
        (int(steps[last] - steps[first]), -float(curve[last] - curve[first]), first, last)
        for first in range(rise.first, rise.last)
        for last in range(first + 1, rise.last + 1)
        if curve[last] - curve[first] >= core * rise.size
    ]
    _, _, first, last = min(inside)
    return first, last


def _describe_spike(
    number: int,
    steps: np.ndarray,
    accuracy: np.ndarray,
    splits: Sequence[str],
    watched: Sequence[int],
    ends: tuple[int, int],
    n_examples: int | None,
    criterion: SpikeCriterion,
) -> Spike:
    change = accuracy[ends[1]] - accuracy[ends[0]]
    jumped = [
        splits[index]
        for index in watched
        if change[index] >= criterion.joining
        and change[index] > criterion.noise * _error(accuracy[list(ends), index], n_examples)
    ]
    size = round(float(change[list(watched)].max()), 6)
    return Spike(number, int(steps[ends[0]]), int(steps[ends[1]]), tuple(jumped), size)


def _first_added(accuracy: np.ndarray, splits: Sequence[str], learned: float) -> int:
    """The first evaluation at which sums of two numbers are answered; 0 where no split says."""
    asked = [index for index, split in enumerate(splits) if split in NUMBERS]
    if not asked:
        return 0
    reached = np.flatnonzero((accuracy[:, asked] >= learned).all(1))
    return int(reached[0]) if len(reached) else len(accuracy)


def _check_curves(
    steps: Sequence[int] | np.ndarray, accuracy: np.ndarray, splits: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Steps and accuracies without evaluations in which something was not measured."""
    steps, accuracy = np.asarray(steps), np.asarray(accuracy, dtype=float)
    if accuracy.shape != (len(steps), len(splits)):
        raise BindscopeError(
            f"curves of sums: {len(steps)} steps and {len(splits)} splits need as many accuracies, got {accuracy.shape}."
        )
    if np.any(np.diff(steps) <= 0):
        raise BindscopeError("curves of sums: steps must increase.")
    known = np.isfinite(accuracy).all(1)
    return steps[known], accuracy[known]


def _check_fractions(criterion: object, *names: str) -> None:
    for name in names:
        if not 0 <= getattr(criterion, name) <= 1:
            raise BindscopeError(f"criterion: {name} must lie in [0, 1], got {getattr(criterion, name)}.")
