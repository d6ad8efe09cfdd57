"""VB9 and VB10: combinations never shown, and programs of other lengths and depths."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.studies.binding.published import REPORTED
from bindscope.studies.framework.claims import Claim, Condition, Finding, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of, fraction_of

KNOWN = 0.95  # accuracy on what training showed, below which nothing can be said of anything else
HELD_OUT_GAP = 0.05
LONGER = 1.25  # programs this many times as long as those of training count as longer
FALL = 0.05  # how much accuracy must fall away from training
HEURISTIC = 2 / 9  # fraction of wrong answers that are line 1's constant: twice what random wrong digits would give


def judge_held_out(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB9: combinations of variable and constant that training never showed are bound as well as others."""
    dataset = results["held-out"]
    shown = cell_of("combinations shown in training", dataset, "accuracy", split="test")
    held = cell_of("combinations never shown", dataset, "accuracy", split="held_out")
    if not shown.value >= KNOWN:
        return not_testable(
            f"the model answers {shown.value:.1%} of what training showed; that must be {KNOWN:.0%} first",
            (held, shown),
        )
    gap = shown.value - held.value
    criterion = (
        Condition(
            gap <= HELD_OUT_GAP,
            f"combinations never shown are answered within {HELD_OUT_GAP:.0%} of the others",
            f"combinations never shown are answered {gap:.1%} worse",
        ),
    )
    control = (Condition(True, f"what training showed is answered at {shown.value:.1%}", ""),)
    return conclude(criterion, control, (held,), (shown,))


def judge_lengths(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB10: accuracy falls away from the lengths and depths of training, and wrong answers come from line 1."""
    dataset = results["lengths"]
    lines, depth = int(dataset.attrs["trained_lines"]), int(dataset.attrs["trained_max_depth"])
    shallow, deep = dataset.depth <= depth, dataset.depth > depth
    within = _split(dataset.sel(depth=shallow, lines=[lines]), "trained length and depth")
    longer = _split(
        dataset.sel(depth=shallow, lines=dataset.lines >= LONGER * lines), f"from {LONGER * lines:.0f} lines on"
    )
    deeper = _split(dataset.sel(depth=deep, lines=dataset.lines <= lines), f"deeper than {depth}")
    if not within.value >= KNOWN:
        return not_testable(
            f"at its own length and depths the model answers {within.value:.1%}; that must be {KNOWN:.0%} first",
            (within,),
        )
    if not longer.n or not deeper.n:
        return not_testable("there are no longer or no deeper programs that this model has positions for", (within,))
    heuristic = _heuristic(dataset)
    criterion = (
        _falls(within, longer, "longer programs"),
        _falls(within, deeper, "deeper chains"),
        Condition(
            heuristic.value > HEURISTIC,
            "wrong answers are often the constant of line 1",
            f"wrong answers are the constant of line 1 in {heuristic.value:.0%} of cases, no clear heuristic"
            if heuristic.n
            else "there are no wrong answers in which a heuristic could show",
        ),
    )
    control = (Condition(True, f"at its own length and depths the model answers {within.value:.1%}", ""),)
    return conclude(criterion, control, (longer, deeper, heuristic), (within,))


def _falls(within: Quantity, beyond: Quantity, what: str) -> Condition:
    fall = within.value - beyond.value
    return Condition(
        fall >= FALL, f"{what} are answered {fall:.0%} worse", f"{what} are answered no worse ({fall:.1%})"
    )


def _split(dataset: xr.Dataset, label: str) -> Quantity:
    """Accuracy over all cells together."""
    n = dataset.n.values
    total = int(n.sum())
    fraction = float(np.nansum(dataset.accuracy.values * n) / total) if total else np.nan
    return fraction_of(label, fraction, total)


def _heuristic(dataset: xr.Dataset) -> Quantity:
    """Where line 1 is not the answer: of the wrong answers, the fraction that are line 1's constant."""
    n, n_misled = dataset.n.values, dataset.n_wrong.values  # programs of a cell, and those where line 1 is wrong
    followed = np.nan_to_num(dataset.line_1_where_wrong.values) * n_misled
    right_by_line_1 = np.nan_to_num(dataset.line_1.values) * n - followed  # there following it was right
    right = np.nan_to_num(dataset.accuracy.values) * n - right_by_line_1
    wrong = float((n_misled - right).sum())
    fraction = float(followed.sum()) / wrong if wrong >= 0.5 else np.nan
    return fraction_of("wrong answers that are line 1's constant", fraction, round(wrong))


VB9 = Claim(
    id="VB9",
    title="Combinations never shown",
    statement=(
        "With a tenth of the combinations of variable and number held out of training, programs that contain them are "
        "still answered: the model composes."
    ),
    paper=REPORTED["VB9"],
    measure=(
        "Accuracy on programs whose queried binding, or the assignment at its root, is a held-out combination: of this "
        "run where it holds some out, otherwise of 'bindscope experiment held-out'."
    ),
    criterion=f"Accuracy on held-out combinations is at most {HELD_OUT_GAP:.0%} below that on the others.",
    control_description=f"Combinations that training showed are answered at {KNOWN:.0%} or better.",
    results=("held-out",),
    judge=judge_held_out,
    draw=defer(f"{__package__}.draw", "draw_held_out"),
)

VB10 = Claim(
    id="VB10",
    title="Other lengths and depths",
    statement=(
        "Away from the length and the depths it was trained on the model gets worse, and the heuristic of answering with "
        "line 1 is part of the harm."
    ),
    paper=REPORTED["VB10"],
    measure="Accuracy and answers equal to line 1's constant for programs of 2–25 lines with chains of 1–13 links.",
    criterion=(
        f"Programs at least {LONGER:g} times as long, and chains deeper than in training, are each answered at least "
        f"{FALL:.0%} worse, and more than 2 in 9 wrong answers are the constant of line 1."
    ),
    control_description=f"At the length and depths of training the model answers {KNOWN:.0%} or more.",
    results=("lengths",),
    judge=judge_lengths,
    draw=defer(f"{__package__}.draw", "draw_lengths"),
)

CLAIMS = (VB9, VB10)
