"""AA8 and AA9: the routing circuit in the weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.intervals import student_interval
from bindscope.studies.assign_add.published import REPORTED
from bindscope.studies.assign_add.seeds import SEEDS, state_seeds
from bindscope.studies.framework.claims import (
    Claim,
    Condition,
    Finding,
    Fixed,
    Quantity,
    conclude,
    not_testable,
    stays_within,
)
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import fraction_of
from bindscope.tasks.assign_add.sequence import OPERAND_POSITIONS

KNOWN = 0.9  # of sums with one variable in a trained position: below it there is no routing to look for
SEEN_KINDS = ("number", "pad")  # what else can stand before a number of an assignment
MOST_FRESH = 0.5  # the most that models without training may show of a pattern, on average
MOST_SHUFFLED = 0.5  # … and that a random matching may in all but one of twenty draws (the 95th percentile)


def judge_first_layer(results: Mapping[str, xr.Dataset]) -> Finding:
    """AA8: in layer 1 numbers prefer variables and the position before, and ``=`` prefers the operands."""
    dataset = results["weights"]
    last = dataset.isel(step=-1)
    margins = last.position_margin.dropna("position")
    previous = fraction_of("positions that prefer the one before", float((margins > 0).mean()), margins.size)
    scores = {kind: float(last.kind_score.sel(from_kind="number", to_kind=kind)) for kind in ("variable", *SEEN_KINDS)}
    quantities = (
        previous,
        Quantity("least margin of a position", float(margins.min()), unit="1"),
        *(Quantity(f"mean score, number to {kind}", score, unit="1") for kind, score in scores.items()),
        Quantity("margin of = for positions 13 and 14", _operand_margin(last), unit="1"),
    )
    problem = _what_hinders(results["trajectory"])
    if problem:
        return not_testable(problem, quantities)
    criterion = (
        Condition(
            previous.value == 1,
            "every contested position prefers the one before it",
            f"{(margins <= 0).sum().item()} of {margins.size} contested positions prefer another than the one before",
        ),
        Condition(
            scores["variable"] > max(scores[kind] for kind in SEEN_KINDS),
            "numbers score variables above numbers and PADs",
            "numbers do not score variables above numbers and PADs",
        ),
        Condition(
            quantities[-1].value > 0,
            "= scores positions 13 and 14 above all others",
            "= does not score positions 13 and 14 above all others",
        ),
    )
    control, control_quantities = _controls(dataset, "previous", "positions that prefer the one before")
    return state_seeds("AA8", conclude(criterion, control, quantities, control_quantities), results)


def judge_identity(results: Mapping[str, xr.Dataset]) -> Finding:
    """AA9: in layer 2 the copy of each variable scores highest with itself."""
    dataset = results["weights"]
    margins = dataset.identity_margin.isel(step=-1)
    found = fraction_of("variables that match themselves best", float((margins > 0).mean()), margins.size)
    weakest = str(margins["variable"].values[int(margins.values.argmin())])
    complete = np.flatnonzero((dataset.identity_margin > 0).all("variable").values)
    quantities = (
        found,
        Quantity(f"least margin, variable {weakest}", float(margins.min()), unit="1"),
        Quantity("mean margin", float(margins.mean()), unit="1"),
        Quantity("first step with all on the diagonal", _step_at(dataset, complete), unit="step"),
    )
    problem = _what_hinders(results["trajectory"])
    if problem:
        return not_testable(problem, quantities)
    wrong = [str(name) for name in margins["variable"].values[margins.values <= 0]]
    criterion = (
        Condition(
            not wrong,
            "every variable scores highest with itself",
            f"{len(wrong)} of {margins.size} variables score higher with another: {', '.join(wrong)}",
        ),
    )
    control, control_quantities = _controls(dataset, "identity", "variables that match themselves best")
    return state_seeds("AA9", conclude(criterion, control, quantities, control_quantities), results)


def _operand_margin(last: xr.Dataset) -> float:
    """By how much ``=`` scores the lower of positions 13 and 14 above the best of the others."""
    scores = last.equals_to_position
    operands = np.isin(scores.position.values, OPERAND_POSITIONS)
    return float(scores.values[operands].min() - scores.values[~operands].max())


def _controls(dataset: xr.Dataset, name: str, words: str) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """The same pattern in models that were never trained, and under a random matching of rows and columns."""
    fresh, shuffled = dataset[f"fresh_{name}"].values, dataset[f"shuffled_{name}"].values
    highest = float(np.quantile(shuffled, 0.95))
    untrained = Quantity(f"{words}, untrained", float(fresh.mean()), *student_interval(fresh), len(fresh))
    said = f"{len(fresh)} untrained models show it for {untrained.value:.0%}"
    conditions = (
        Condition(stays_within(untrained, MOST_FRESH), said, f"{said} already"),
        Condition(
            highest <= MOST_SHUFFLED,
            f"with rows and columns matched at random it is {shuffled.mean():.0%}",
            f"with rows and columns matched at random it still reaches {highest:.0%}",
        ),
    )
    return conditions, (
        untrained,
        Quantity(f"{words}, matched at random", float(shuffled.mean()), *_spread(shuffled), len(shuffled)),
    )


def _spread(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


def _step_at(dataset: xr.Dataset, positions: np.ndarray) -> float:
    return float(dataset.step.values[positions[0]]) if len(positions) else np.nan


def _what_hinders(trajectory: xr.Dataset) -> str | None:
    """Why there may be no routing to look for."""
    if "1tr" not in trajectory.split.values:
        return "this run was not evaluated on sums with one variable"
    last = float(trajectory.split_accuracy.sel(split="1tr").values[-1])
    if last >= KNOWN:
        return None
    ended = (
        "training has not ended and" if trajectory.attrs.get("status") in ("training", "interrupted") else "at its end"
    )
    return f"{ended} the model answers {last:.1%} of the sums with one variable: it does not look variables up yet"


_CONTROL = (
    "Models of the same shape without training show the pattern for at most "
    f"{MOST_FRESH:.0%} on average, and with rows and columns matched at random it stays at or below {MOST_SHUFFLED:.0%} "
    "in 95 % of draws."
)
_FIXED = Fixed("2026-11-16", "the released run; a pattern in the weights of one model is exact and has no interval")

AA8 = Claim(
    id="AA8",
    title="Layer 1 attends one back, and = to the operands",
    statement=(
        "Layer 1's QK, tried on all pairs of embeddings, lets numbers score variables highly and positions 0 to 11 "
        "prefer the one before them, so that each assigned number attends to its variable; = prefers positions 13 and 14."
    ),
    paper=REPORTED["AA8"],
    measure=(
        "QK1 over all embeddings of tokens and positions. Position i competes over j < i, j ≠ i − 2 (a token two before "
        "a number is no variable); positions 1 and 2 have one candidate and are left out. Numbers before a number's "
        "variable can only be numbers or PADs, so variables are compared with those."
    ),
    criterion=(
        "At the last checkpoint every position 3 to 11 prefers the one before it, numbers score variables on average "
        "above numbers and PADs, and = scores positions 13 and 14 above every other position."
    ),
    control_description=_CONTROL,
    results=("weights", "trajectory", SEEDS),
    judge=judge_first_layer,
    draw=defer(f"{__package__}.draw", "draw_first_layer"),
    fixed=_FIXED,
)

AA9 = Claim(
    id="AA9",
    title="Layer 2 matches a variable with itself",
    statement=(
        "The copy of a variable that = holds after layer 1 scores highest, in layer 2, with the copy of the same "
        "variable that its number holds: (v OV1) QK2 (v OV1)ᵀ is largest on the diagonal."
    ),
    paper=REPORTED["AA9"],
    measure=(
        "The matrix over all variables at every checkpoint; a row's margin is its diagonal minus the largest other entry."
    ),
    criterion="At the last checkpoint the diagonal is the largest entry of every row.",
    control_description=_CONTROL,
    results=("weights", "trajectory", SEEDS),
    judge=judge_identity,
    draw=defer(f"{__package__}.draw", "draw_identity"),
    fixed=_FIXED,
)

CLAIMS = (AA8, AA9)
