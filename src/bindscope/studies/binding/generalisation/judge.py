"""VB9 and VB10: combinations never shown, and programs of other lengths and depths."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.studies.binding.generalisation.measure import FIXED_LENGTH, KNOWN, saw_one_length
from bindscope.studies.binding.published import REPORTED
from bindscope.studies.framework.claims import (
    Claim,
    Condition,
    Finding,
    Fixed,
    Quantity,
    agree,
    conclude,
    inconclusive,
    not_testable,
    reaches,
    stays_within,
)
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of, difference_of, fraction_of, range_of

HELD_OUT_GAP = 0.05
FAR = 0.2  # how much lower combinations never shown must be answered by the heuristic
LONGER = 1.25  # programs this many times as long as those of training count as longer
FALL = 0.05  # how much accuracy must fall away from training
BEYOND_CHANCE = 0.1  # how much more often than a random variable's value wrong answers must be line 1's constant


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
    gap = difference_of("", shown, held)
    criterion = (
        Condition(
            stays_within(gap, HELD_OUT_GAP),
            f"combinations never shown are answered within {HELD_OUT_GAP:.0%} of the others",
            f"combinations never shown are answered {gap.value:.1%} worse",
        ),
    )
    label = "combinations never shown, heuristic phase (highest)"
    heuristic = fraction_of(label, float(dataset.heuristic_accuracy), int(dataset.n_heuristic))
    known = heuristic.value == heuristic.value
    words = f"the heuristic alone answers {heuristic.value:.0%} of them"
    control = (
        Condition(
            reaches(difference_of("", held, heuristic), FAR) if known else None,
            words,
            f"{words} already, so that they ask for no binding",
            "" if known else "no heuristic phase shows what is answered of them without binding",
        ),
    )
    over_seeds = (range_of("gap, over seeds", dataset.gap.values),) if dataset.sizes.get("seed", 1) > 1 else ()
    return conclude(criterion, control, (held, *over_seeds), (shown, heuristic)).adding(_tell_seeds(dataset))


def judge_lengths(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB10: accuracy falls away from the lengths and depths of training, and wrong answers come from line 1."""
    own, fixed = results["lengths"], results["fixed-length"]
    if saw_one_length(own):
        return _judge_grids([_Grid(own)], "this run")
    varied = (
        f"this run was trained on programs of {own.attrs['trained_min_lines']} to {own.attrs['trained_lines']} lines, so "
        "that other lengths are nothing new to it"
    )
    if fixed.sizes["seed"]:
        who = f"{fixed.attrs['preset']} trained on {fixed.attrs['trained_lines']} lines alone (experiment '{FIXED_LENGTH}')"
        finding = _judge_grids([_Grid(fixed.isel(seed=index)) for index in range(fixed.sizes["seed"])], who)
        return finding.adding(f"Not judged on this run: {varied}.")
    grid = _Grid(own)
    return inconclusive(
        f"{varied}; three seeds of {fixed.attrs['preset']} on one length are trained by 'bindscope experiment "
        f"{FIXED_LENGTH}'",
        (grid.longer, grid.shorter, grid.deeper, grid.heuristic),
        (grid.within, grid.by_chance),
    )


class _Grid:
    """What one model answers at its own length and depths, and away from them."""

    def __init__(self, dataset: xr.Dataset) -> None:
        lines, depth = int(dataset.attrs["trained_lines"]), int(dataset.attrs["trained_max_depth"])
        shallow, length = dataset.depth <= depth, dataset.lines
        self.within = _split(dataset.sel(depth=shallow, lines=[lines]), "trained length and depth")
        self.longer = _split(
            dataset.sel(depth=shallow, lines=length >= LONGER * lines), f"from {LONGER * lines:.0f} lines on"
        )
        self.shorter = _split(
            dataset.sel(depth=shallow, lines=length * LONGER <= lines), f"up to {lines / LONGER:.0f} lines"
        )
        self.deeper = _split(dataset.sel(depth=~shallow, lines=length <= lines), f"deeper than {depth}")
        self.heuristic, self.by_chance = _heuristic(dataset)

    @property
    def falls(self) -> dict[str, bool | None]:
        """Whether each kind is answered worse; None also where there is none of it."""
        kinds = {"shorter programs": self.shorter, "longer programs": self.longer, "deeper chains": self.deeper}
        return {
            name: reaches(difference_of("", self.within, beyond), FALL) if beyond.n else None
            for name, beyond in kinds.items()
        }

    @property
    def misled(self) -> bool | None:
        """Whether mistakes are line 1's constant beyond chance; None where there are none."""
        if not self.heuristic.n:
            return None
        return reaches(difference_of("", self.heuristic, self.by_chance), BEYOND_CHANCE)


def _judge_grids(grids: list[_Grid], who: str) -> Finding:
    """Every condition must come out alike in all trainings; where they differ it cannot be told."""
    numbers = tuple(q for g in grids for q in (g.longer, g.shorter, g.deeper, g.heuristic))
    beside = tuple(q for g in grids for q in (g.within, g.by_chance))
    known = [grid for grid in grids if grid.within.value >= KNOWN]
    if not known:
        best = max(grid.within.value for grid in grids)
        return not_testable(
            f"at its own length and depths {who} answers {best:.1%}; that must be {KNOWN:.0%} first", beside
        )
    if not all(grid.longer.n and grid.deeper.n for grid in known):
        return not_testable(f"there are no longer or no deeper programs that {who} has positions for", beside)
    criterion = [
        Condition(
            agree(grid.falls[kind] for grid in known),
            f"{kind} are answered at least {FALL:.0%} worse",
            f"{kind} are answered no worse",
            f"whether {kind} are answered {FALL:.0%} worse cannot be told",
        )
        for kind in known[0].falls
    ]
    criterion.append(
        Condition(
            agree(grid.misled for grid in known),
            "wrong answers are the constant of line 1 more often than a random variable holds it",
            "wrong answers are the constant of line 1 hardly more often than a random variable holds it",
            "whether wrong answers are the constant of line 1 more often than a random variable holds it cannot be told",
        )
    )
    control = (
        Condition(
            agree(reaches(grid.within, KNOWN) for grid in known),
            f"at their own length and depths they are answered at {min(g.within.value for g in known):.1%}",
            f"at their own length and depths they are answered at {min(g.within.value for g in known):.1%} only",
        ),
    )
    n = len(known)
    cut = f"; {len(grids) - n} more had not learned their own length" if len(grids) > n else ""
    said = f"Judged on {who}, {'one seed' if n == 1 else f'{n} seeds'}{cut}."
    return conclude(tuple(criterion), control, numbers, beside).adding(said)


def _tell_seeds(dataset: xr.Dataset) -> str:
    n, cut_off = int(dataset.attrs["seeds"]), str(dataset.attrs["cut_off"])
    cut = (
        f" Not counted, for training was cut off before they learned what it showed: seeds {cut_off}."
        if cut_off
        else ""
    )
    return ("One seed" if n == 1 else f"{n} seeds") + f".{cut}"


def _split(dataset: xr.Dataset, label: str) -> Quantity:
    """Accuracy over all cells together."""
    n = dataset.n.values
    total = int(n.sum())
    fraction = float(np.nansum(dataset.accuracy.values * n) / total) if total else np.nan
    return fraction_of(label, fraction, total)


def _heuristic(dataset: xr.Dataset) -> tuple[Quantity, Quantity]:
    """Where line 1 is not the answer: of the wrong answers, the fraction that are line 1's constant, and by chance."""
    n_misled = dataset.n_wrong.values  # programs of a cell where line 1 is wrong
    wrong = n_misled * (1 - np.nan_to_num(dataset.accuracy_where_wrong.values))
    followed = float((np.nan_to_num(dataset.line_1_where_wrong.values) * n_misled).sum())
    total = float(wrong.sum())
    by_chance = float((np.nan_to_num(dataset.line_1_by_chance.values) * wrong).sum())
    n = round(total)
    return (
        fraction_of("wrong answers that are line 1's constant", followed / total if n else np.nan, n),
        Quantity("… were they values of random variables", by_chance / total if n else np.nan, n=n),
    )


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
    criterion=(
        f"Accuracy on held-out combinations is at most {HELD_OUT_GAP:.0%} below that on the others, by the whole interval, in "
        f"all seeds together that answer {KNOWN:.0%} or more of what training showed."
    ),
    control_description=(
        f"They ask for binding: at no evaluation of the heuristic phase are they answered better than {FAR:.0%} below the end."
    ),
    results=("held-out",),
    judge=judge_held_out,
    draw=defer(f"{__package__}.draw", "draw_held_out"),
    fixed=Fixed(
        "2026-11-17",
        "one seed of 'held-out', whose heuristic phase answers 40 % of them at best; the criterion since 2026-11-16, before "
        "it was trained",
    ),
)

VB10 = Claim(
    id="VB10",
    title="Other lengths and depths",
    statement=(
        "Away from the length and the depths it was trained on the model gets worse, and the heuristic of answering with "
        "line 1 is part of the harm."
    ),
    paper=REPORTED["VB10"],
    measure=(
        "Accuracy and answers equal to line 1's constant for programs of 2–25 lines with chains of 1–13 links: of this run "
        "where training showed one length only, otherwise of the preset that 'bindscope experiment fixed-length' trains on one "
        "length, whatever the run."
    ),
    criterion=(
        f"Programs at least {LONGER:g} times as long, programs as much shorter, and chains deeper than in training are each "
        f"answered at least {FALL:.0%} worse, and of the wrong answers to programs that line 1 gets wrong "
        f"{BEYOND_CHANCE:.0%} more are its constant than if they were values of random variables; by whole intervals, in every "
        "seed. Where seeds do not agree, or where training showed other lengths, it is inconclusive."
    ),
    control_description=(
        f"At the length and depths of training {KNOWN:.0%} or more are answered, by the whole interval; and what a random "
        "variable's value would do is subtracted above."
    ),
    results=("lengths", "fixed-length"),
    judge=judge_lengths,
    draw=defer(f"{__package__}.draw", "draw_lengths"),
    fixed=Fixed(
        "2026-11-17",
        "binding-laptop and binding-plain, which were trained on 2 to 16 lines, without the random variable beside them; no run of one length",
    ),
)

CLAIMS = (VB9, VB10)
