"""VB2: where answers come from in the heuristic phase, and which depth is learned last."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.measures.phases import find_transition
from bindscope.studies.binding.learning.judge import lacks_phases, tell_seeds, what_hinders
from bindscope.studies.binding.published import REPORTED
from bindscope.studies.framework.claims import (
    Claim,
    Condition,
    Finding,
    Fixed,
    Quantity,
    agree,
    conclude,
    not_testable,
    reaches,
    stays_within,
)
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import difference_of, fraction_of, times
from bindscope.studies.framework.trajectory import phases_of

EARLY_FRACTION = 0.5
ROOT_GAP = 0.2  # how much better roots on lines 1–2 must be answered than later ones during the heuristic phase
FLAT_GAP = 0.05  # … and how little better at the end
LEARNED = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # accuracies from which on a depth may be called learned


def judge_sources(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB2: the heuristic phase answers from lines 1 and 2, and depth 1 is learned last."""
    dataset, seeds = results["trajectory"], results["seeds"]
    if hindered := what_hinders(dataset):
        return hindered
    if dataset.sizes["root_line"] < 3 or dataset.sizes["depth"] < 2:
        return not_testable("programs this short have no roots from line 3 on, or no chain deeper than 1")
    phases = {phase.name: phase for phase in phases_of(dataset)}
    if lacking := lacks_phases(dataset, phases, ["heuristic"]):
        return lacking
    heuristic = phases["heuristic"]
    during = dataset.sel(step=slice(heuristic.first_step, heuristic.last_step))
    n_misleading = int(dataset.n_misleading)
    misled = fraction_of(
        "from line 1 or 2 where they mislead", float(during.follows_early_lines.median()), n_misleading
    )
    early, late = _accuracy_by_root(during, slice(1, 2)), _accuracy_by_root(during, slice(3, None))
    criterion = (
        Condition(
            reaches(misled, EARLY_FRACTION),
            "in the heuristic phase misleading programs are mostly answered from line 1 or 2",
            "in the heuristic phase misleading programs are not mostly answered from line 1 or 2",
        ),
        Condition(
            reaches(difference_of("", early, late), ROOT_GAP),
            "roots on early lines are answered far better",
            "roots on early lines are hardly answered better",
        ),
        slower_first_hop(seeds),
    )
    control, control_quantities = _source_control(dataset, misled, "systematic" in phases)
    quantities = (misled, early, late, *_last_depths(seeds))
    return conclude(criterion, control, quantities, control_quantities).adding(tell_seeds(seeds))


def is_depth_1_last(steps: np.ndarray, by_depth: np.ndarray, threshold: float) -> bool | None:
    """Whether depth 1 reaches ``threshold`` after every deeper depth; ``by_depth`` is [step, depth].

    None where it cannot be told: at the same evaluation, or where training was cut off before either did.
    """
    known = np.isfinite(by_depth).all(1)
    found = [find_transition(steps[known], curve, threshold) for curve in by_depth[known].T]
    first, *deeper = [np.inf if step is None else step for step in found]
    if first == max(deeper):
        return None
    return first > max(deeper)


def slower_first_hop(seeds: xr.Dataset) -> Condition:
    """Depth 1 last at every threshold in every training, or at none in any; otherwise the answer hangs on the threshold."""
    table = _table(seeds)
    answers = {answer for row in table.values() for answer in row if answer is not None}
    untold = [threshold for threshold, row in table.items() if set(row) == {None}]
    last = [threshold for threshold, row in table.items() if True in row]
    other = [threshold for threshold, row in table.items() if False in row]
    words = "depth 1 is the last to be learned"
    unclear = (
        f"whether {words} hangs on what counts as learned: it is at {_listed(last)}, it is not at {_listed(other)}"
    )
    return Condition(
        None if untold else agree(answers),
        f"{words}, whatever accuracy from {LEARNED[0]:.0%} to {LEARNED[-1]:.0%} counts as that",
        f"{words} at none of the accuracies from {LEARNED[0]:.0%} to {LEARNED[-1]:.0%}",
        unclear
        if len(answers) > 1
        else f"whether {words} cannot be told at {_listed(untold)}: training was cut off, or evaluations are too far apart",
    )


def _table(seeds: xr.Dataset) -> dict[float, list[bool | None]]:
    curves = seeds.accuracy_by_depth.transpose("seed", "step", "depth").values
    return {each: [is_depth_1_last(seeds.step.values, curve, each) for curve in curves] for each in LEARNED}


def _last_depths(seeds: xr.Dataset) -> list[Quantity]:
    quantities = []
    for threshold, row in _table(seeds).items():
        known = [answer for answer in row if answer is not None]
        fraction = float(np.mean(known)) if known else np.nan
        quantities.append(fraction_of(f"seeds in which depth 1 is last to reach {threshold:.0%}", fraction, len(known)))
    return quantities


def _listed(thresholds: list[float]) -> str:
    return ", ".join(f"{threshold:.0%}" for threshold in thresholds)


def _source_control(
    dataset: xr.Dataset, misled: Quantity, systematic: bool
) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """The untrained model has no such heuristic; where the run ends systematic, the line of the root no longer matters."""
    first = float(dataset.follows_early_lines[0])
    untrained = fraction_of("from line 1 or 2 at the first evaluation", first, int(dataset.n_misleading))
    conditions = [
        Condition(
            stays_within(difference_of("", untrained, times(misled, 0.5)), 0),
            "at the first evaluation the heuristic is absent",
            "at the first evaluation the heuristic is there already",
        )
    ]
    quantities = [untrained]
    if systematic:
        last = dataset.isel(step=slice(-1, None))
        early, late = _accuracy_by_root(last, slice(1, 2)), _accuracy_by_root(last, slice(3, None))
        conditions.append(
            Condition(
                stays_within(difference_of("", early, late), FLAT_GAP),
                "at the end the line of the root makes no difference",
                "at the end the line of the root still makes a difference",
            )
        )
        quantities.append(Quantity("root from line 3 on, at the end", late.value, late.low, late.high, late.n))
    return tuple(conditions), tuple(quantities)


def _accuracy_by_root(dataset: xr.Dataset, lines: slice) -> Quantity:
    """Accuracy over the programs whose root is on these lines, averaged over the evaluations."""
    chosen = dataset.sel(root_line=lines)
    counts = chosen.n_by_root_line.values
    accuracy = chosen.accuracy_by_root_line.mean("step").values
    n = int(counts.sum())
    fraction = float(np.nansum(accuracy * counts) / n) if n else np.nan
    label = "root on line 1–2" if lines.stop else f"root from line {lines.start} on"
    return fraction_of(f"accuracy, {label}", fraction, n)


VB2 = Claim(
    id="VB2",
    title="Early lines first, one hop last",
    statement=(
        "In the second phase predictions are the constants of line 1 or 2 whatever is asked, so accuracy depends on the "
        "line that holds the answer; chains of depth 1 are learned more slowly than deeper ones."
    ),
    paper=REPORTED["VB2"],
    measure=(
        "Predictions on programs whose answer is on neither of the first two lines; accuracy by root line; in this training "
        "and in other seeds of the same settings, the step at which each depth reaches an accuracy and stays, for "
        f"accuracies of {_listed(list(LEARNED))}."
    ),
    criterion=(
        f"In the heuristic phase at least {EARLY_FRACTION:.0%} of predictions on misleading programs are a constant of line "
        f"1 or 2, and roots on lines 1–2 are answered at least {ROOT_GAP:.0%} better than later ones, each by its whole "
        "interval. Depth 1 reaches an accuracy later than every deeper depth: at all of those accuracies in all trainings it "
        "holds, at none in any it fails, and anything between is inconclusive. Depths that reach it at the same evaluation, "
        "or not before training is cut off, say nothing."
    ),
    control_description=(
        "The first evaluation shows at most half of that heuristic, and at the end of a systematic run roots on early lines "
        f"are at most {FLAT_GAP:.0%} better."
    ),
    results=("trajectory", "seeds"),
    judge=judge_sources,
    draw=defer(f"{__package__}.draw", "draw_sources"),
    fixed=Fixed(
        "2026-11-17",
        "binding-laptop and binding-plain and their seeds, in which depth 1 is last to reach 50 % and first to reach 90 %; all but the "
        "rule about accuracies since 2026-11-16, written before a run was judged",
    ),
)

CLAIMS = (VB2,)
