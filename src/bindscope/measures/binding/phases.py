"""Find the phases of a binding run in its recorded curves: random → heuristic → systematic.

Each evaluation is read by itself first, with a stated criterion (:class:`PhaseCriterion`). A phase is then a stretch of
the run: of all ways to cut it into random, heuristic, systematic *in that order*, the one that contradicts the fewest
readings. A phase is reported only if it held for several evaluations running and most readings in it agree, so a lucky
evaluation, a loss spike or a shuffled curve makes no phase. What lies between two phases is a transition.

>>> curves = curves_from_evaluations(steps, evaluations)
>>> [(phase.name, phase.first_step, phase.last_step) for phase in detect_phases(curves)]
[('random', 0, 50), ('heuristic', 200, 1100), ('systematic', 1500, 1800)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.intervals import wilson_interval
from bindscope.measures.phases import TRANSITION, Phase, phases_from_readings

PHASES = ("random", "heuristic", "systematic")


@dataclass(frozen=True)
class PhaseCriterion:
    """When an evaluation reads as random, heuristic or systematic, and how long a reading must last.

    "Misleading programs" are those whose answer is not the constant of line 1 or 2: there the early-line rule and the
    chain predict different digits.
    """

    above_chance: float = 0.05  # random: accuracy (lower end of its 95 % interval) is at most chance + this
    rule_fraction: float = 0.5  # heuristic: at least this fraction of misleading programs is answered from line 1 or 2
    chain_fraction: float = 0.9  # systematic: at least this fraction of misleading programs is answered by the chain …
    depth_fraction: float = 0.9  # … and at every depth at least this fraction of all programs is answered correctly
    persist: int = 2  # a phase the run enters holds at this many evaluations running (the one it starts in need not)
    consistency: float = 0.8  # … and at this fraction of the evaluations from its first to its last

    def __post_init__(self) -> None:
        for name in ("above_chance", "rule_fraction", "chain_fraction", "depth_fraction", "consistency"):
            if not 0 <= getattr(self, name) <= 1:
                raise BindscopeError(f"phase criterion: {name} must lie in [0, 1], got {getattr(self, name)}.")
        if self.persist < 1:
            raise BindscopeError(f"phase criterion: persist must be at least 1, got {self.persist}.")

    def describe(self) -> dict[str, str]:
        """The criterion in words for a table or a caption: what makes each phase, and what ``any`` of them needs."""
        return {
            "random": f"Accuracy is not clearly (95 % interval) above chance + {100 * self.above_chance:.0f} %.",
            "heuristic": (
                f"Accuracy is clearly above that; where lines 1 and 2 mislead, at least {100 * self.rule_fraction:.0f} % of the "
                "predictions are a constant of line 1 or 2, and more than follow the chain."
            ),
            "systematic": (
                f"Where lines 1 and 2 mislead, at least {100 * self.chain_fraction:.0f} % of the predictions follow the chain; "
                f"accuracy is at least {100 * self.depth_fraction:.0f} % at every depth."
            ),
            "any": (
                f"A phase once entered holds at {self.persist} evaluations running, and at {100 * self.consistency:.0f} % of "
                "those from its first to its last."
            ),
        }


@dataclass(frozen=True, eq=False)
class PhaseCurves:
    """The curves the criterion reads, each ``[step]``; fractions may be NaN where nothing was measured."""

    steps: np.ndarray
    accuracy: np.ndarray
    follows_chain: np.ndarray  # fraction of misleading programs answered by the chain
    follows_early_lines: np.ndarray  # fraction of misleading programs answered with a constant of line 1 or 2
    worst_depth: np.ndarray  # accuracy at the depth where it is lowest
    chance: float  # accuracy of always giving the most frequent answer
    n_examples: int

    def __post_init__(self) -> None:
        curves = (self.accuracy, self.follows_chain, self.follows_early_lines, self.worst_depth)
        if any(np.shape(curve) != np.shape(self.steps) for curve in curves):
            raise BindscopeError("phase curves: every curve needs one value per step.")
        if np.any(np.diff(self.steps) <= 0):
            raise BindscopeError("phase curves: steps must increase.")


def detect_phases(curves: PhaseCurves, criterion: PhaseCriterion | None = None) -> list[Phase]:
    """The phases of a run in order; those it never had, or not for long enough, are left out."""
    criterion = PhaseCriterion() if criterion is None else criterion
    readings = read_evaluations(curves, criterion)
    return phases_from_readings(
        readings, PHASES, curves.steps, curves.accuracy, criterion.persist, criterion.consistency
    )


def read_evaluations(curves: PhaseCurves, criterion: PhaseCriterion | None = None) -> np.ndarray:
    """What each evaluation reads as by itself: a phase's name, or ``transition``. ``[step]`` of text."""
    criterion = PhaseCriterion() if criterion is None else criterion
    known = np.isfinite(curves.accuracy)
    hits = np.where(known, curves.accuracy, 0) * curves.n_examples
    lowest, _ = wilson_interval(np.clip(hits, 0, curves.n_examples), curves.n_examples)
    chain = np.nan_to_num(curves.follows_chain, nan=0.0)
    rule = np.nan_to_num(curves.follows_early_lines, nan=0.0)
    is_random = lowest <= curves.chance + criterion.above_chance
    every_depth = np.nan_to_num(curves.worst_depth, nan=0.0) >= criterion.depth_fraction
    is_systematic = ~is_random & (chain >= criterion.chain_fraction) & every_depth
    is_heuristic = ~is_random & ~is_systematic & (rule >= criterion.rule_fraction) & (rule > chain)
    readings = np.select([~known, is_random, is_systematic, is_heuristic], [TRANSITION, *_READING_ORDER], TRANSITION)
    return readings


def curves_from_evaluations(steps: Sequence[int], evaluations: Sequence[Mapping[str, Any]]) -> PhaseCurves:
    """Gather the curves from evaluations of a binding task, as the evaluator makes them."""
    splits = [evaluation["test"] for evaluation in evaluations]
    if not splits:
        raise BindscopeError("phase curves: the run holds no evaluation yet.")
    if "misleading" not in splits[0]:
        raise BindscopeError("phase curves: phases are defined for binding runs only.")
    return PhaseCurves(
        steps=np.asarray(steps, dtype=np.int64),
        accuracy=np.array([split["accuracy"] for split in splits], dtype=float),
        follows_chain=np.array([split["misleading"]["follows_chain"] for split in splits], dtype=float),
        follows_early_lines=np.array([split["misleading"]["follows_early_lines"] for split in splits], dtype=float),
        worst_depth=lowest_accuracy([split["accuracy_by_depth"] for split in splits]),
        chance=float(splits[0]["chance"]),
        n_examples=int(splits[0]["n"]),
    )


def lowest_accuracy(accuracy_by_depth: Sequence[Sequence[float | None]] | np.ndarray) -> np.ndarray:
    """The lowest accuracy over depths, ``[step, depth]`` to ``[step]``; depths without examples are left out."""
    values = np.asarray(accuracy_by_depth, dtype=float)
    lowest = np.where(np.isnan(values), np.inf, values).min(axis=1)
    return np.where(np.isfinite(lowest), lowest, np.nan)


_READING_ORDER = ("random", "systematic", "heuristic")
