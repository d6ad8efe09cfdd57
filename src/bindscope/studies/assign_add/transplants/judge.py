"""AA10: what the two spikes are, judged by transplants between the checkpoints around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from bindscope.measures.arithmetic.spike_transplants import DIRECTIONS
from bindscope.studies.assign_add.judging import highest_of, lowest_of
from bindscope.studies.assign_add.published import REPORTED
from bindscope.studies.assign_add.scores.describe import describe_scores_around
from bindscope.studies.assign_add.seeds import SEEDS, state_seeds
from bindscope.studies.framework.claims import (
    Claim,
    Condition,
    Finding,
    Fixed,
    Quantity,
    all_hold,
    conclude,
    not_testable,
    reaches,
    stays_within,
)
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of

MOST_OF_IT, LITTLE_OF_IT = 0.8, 0.2  # of a jump; of the sums with one variable
ROUTING, COMPUTING, LOOKING = "routing", "computing", "pattern 2"
DRIFT = "routing over steps before it"


def judge_spikes(results: Mapping[str, xr.Dataset]) -> Finding:
    """AA10: spike 1 is routing that forms, spike 2 the last restricted variable that gets routed."""
    transplants, by_variable = results["transplants"], results["by_variable"]
    n = transplants.sizes["spike"]
    if n < 2:
        return not_testable(
            "the run has one spike with checkpoints around it; the claim is about two",
            _fractions(transplants.isel(spike=0)),
        )
    first, second = transplants.isel(spike=0), transplants.isel(spike=1)
    criterion = (
        *(condition for spike in (first, second) for condition in _routes(spike)),
        *_last_variable(second, by_variable),
    )
    quantities = (*_fractions(first), *_fractions(second), *_variable_fractions(second, by_variable))
    control = _control_fractions(first, second)
    finding = conclude(criterion, _controls(control), quantities, control)
    if "score_terms" in results:
        finding = finding.adding(describe_scores_around(second, results["score_terms"]))
    return state_seeds("AA10", finding, results)


def _routes(spike: xr.Dataset) -> tuple[Condition, ...]:
    """Where layer 2 attends, and the weights that decide it, carry the jump; the weights that compute do not."""
    number = int(spike.spike)
    carrying = [_carried(spike, part, direction) for part in (ROUTING, LOOKING) for direction in DIRECTIONS]
    computing = [_carried(spike, COMPUTING, direction) for direction in DIRECTIONS]
    least, most = lowest_of(carrying), max(computing, key=lambda quantity: abs(quantity.value))
    words = f"of spike {number} both ways, the weights that compute carry {most.number}"
    computes = f"the weights that compute carry {most.number} of spike {number}"
    return (
        Condition(
            all_hold(reaches(quantity, MOST_OF_IT) for quantity in carrying),
            f"routing and where layer 2 attends each carry at least {_percent(least.value)} {words}",
            f"'{least.label}' carries only {least.number} of spike {number} one of the two ways",
            f"'{least.label}' carries {least.number} of spike {number} one of the two ways, which may be too little",
        ),
        Condition(
            all_hold(
                held for each in computing for held in (stays_within(each, LITTLE_OF_IT), reaches(each, -LITTLE_OF_IT))
            ),
            "",
            computes,
            f"{computes}, which may be too much",
        ),
    )


def _carried(spike: xr.Dataset, part: str, direction: str) -> Quantity:
    return cell_of(part, spike, "total_fraction", part=part, direction=direction)


def _last_variable(spike: xr.Dataset, by_variable: xr.Dataset) -> tuple[Condition, ...]:
    """Before the second spike one restricted variable is missing and no other; after it none is."""
    before, after = (_at(by_variable, int(spike[name])) for name in ("before_step", "after_step"))
    where: dict[str, Any] = {
        "variable": str(spike.focus_variable.values),
        "operand": str(spike.focus_operand.values),
    }
    name, is_restricted = f"{where['variable']} as {where['operand']} operand", bool(before.restricted.sel(where))
    number = int(spike.spike)
    old, new = (cell_of(name, at, "accuracy", **where) for at in (before, after))
    words = f"from {old.number} to {new.number}"
    others = {
        f"{variable} as {operand} operand": reaches(
            cell_of("", before, "accuracy", variable=variable, operand=operand), MOST_OF_IT
        )
        for variable in before.variable.values
        for operand in before.operand.values
        if (variable, operand) != (where["variable"], where["operand"])
    }
    unanswered = [other for other, answered in others.items() if answered is not True]
    missing = f"{', '.join(unanswered[:3])} {'was' if len(unanswered) == 1 else 'were'} not answered either"
    rises = f"what rises most at spike {number} is {name}, {words}"
    return (
        Condition(
            all_hold([is_restricted, stays_within(old, LITTLE_OF_IT), reaches(new, MOST_OF_IT)]),
            f"sums with {name}, which training never shows, go {words} at spike {number}",
            rises + ("" if is_restricted else ", which training does show"),
            f"{rises}, which may be too little",
        ),
        Condition(
            all_hold(others.values()),
            "every other variable was answered before",
            f"before spike {number} {missing}",
            f"before spike {number} perhaps {missing}",
        ),
    )


def _controls(control: tuple[Quantity, ...]) -> tuple[Condition, ...]:
    """Every control that the run has: drift needs a checkpoint saved before the spike."""
    measured = [quantity for quantity in control if np.isfinite(quantity.value)]
    if not measured:
        return (Condition(False, "", "no control was measured"),)
    highest = highest_of(measured)
    drifted = any(quantity.label.endswith(DRIFT) for quantity in measured)
    names = ["as large a change at random", "other sums' patterns", *["as many steps without a spike"] * drifted]
    words = f"{', '.join(names[:-1])} and {names[-1]} carry {highest.number}"
    held = all_hold(stays_within(quantity, LITTLE_OF_IT) for quantity in measured)
    return (Condition(held, f"{words} at most", f"{words}, too much", f"{words}, which may be too much"),)


def _control_fractions(first: xr.Dataset, second: xr.Dataset) -> tuple[Quantity, ...]:
    quantities = []
    for spike in (first, second):
        number = int(spike.spike)
        quantities += [
            _over_draws(f"spike {number}, routing changed at random", spike, ROUTING),
            _over_draws(f"spike {number}, pattern 2 of other sums", spike, LOOKING),
            cell_of(f"spike {number}, {DRIFT}", spike, "drift_fraction", part=ROUTING),
        ]
    return tuple(quantities)


def _over_draws(label: str, spike: xr.Dataset, part: str) -> Quantity:
    """The mean of the controls drawn at random, with the range that 95 % of them lie in."""
    draws = spike.random_draws.sel(controlled=part).values
    low, high = np.quantile(draws, [0.025, 0.975])
    return Quantity(f"{label} ({len(draws)} draws)", float(draws.mean()), float(low), float(high), len(draws))


def _fractions(spike: xr.Dataset) -> tuple[Quantity, ...]:
    number = int(spike.spike)
    steps = f"{int(spike.before_step):,} → {int(spike.after_step):,}"
    names = {LOOKING: "where layer 2 attends", ROUTING: "routing", COMPUTING: "computing"}
    return tuple(
        cell_of(f"spike {number} ({steps}) {'reproduced' if direction == 'reproduce' else 'undone'} by {words}", spike,
                "total_fraction", part=part, direction=direction)
        for part, words in names.items()
        for direction in ("reproduce", "undo")
    )  # fmt: skip


def _variable_fractions(spike: xr.Dataset, by_variable: xr.Dataset) -> tuple[Quantity, ...]:
    where: dict[str, Any] = {"variable": str(spike.focus_variable.values), "operand": str(spike.focus_operand.values)}
    name = f"{where['variable']} as {where['operand']} operand"
    n = int(by_variable.n.sel(where))
    ends = [
        cell_of(f"{name}, step {int(spike[step]):,}", _at(by_variable, int(spike[step])), "accuracy", n=n, **where)
        for step in ("before_step", "after_step")
    ]
    embedding = f"spike {int(spike.spike)} reproduced by the embedding of {where['variable']} alone"
    alone = cell_of(embedding, spike, "total_fraction", part="its variable", direction="reproduce")
    return (*ends, alone)


def _at(by_variable: xr.Dataset, step: int) -> xr.Dataset:
    return by_variable.sel(step=step)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.0f} %".replace("-0 %", "0 %")


AA10 = Claim(
    id="AA10",
    title="What the spikes are",
    statement=(
        "At the first spike the circuit forms that routes the operands' values to the sum; at the second the last "
        "variable in an operand position that training never shows gets routed."
    ),
    paper=REPORTED["AA10"],
    measure=(
        "Parts of the model after a spike put into the one before it, and the reverse; the fraction of the jump that "
        "follows, over the splits that jump. Accuracy by variable and operand around the second spike."
    ),
    criterion=(
        f"For both spikes, the weights that route, and where layer 2 attends by itself, reproduce and undo at least "
        f"{MOST_OF_IT:.0%} of the jump and the weights that compute at most {LITTLE_OF_IT:.0%}; and at the second spike "
        f"one restricted variable rises from at most {LITTLE_OF_IT:.0%} to at least {MOST_OF_IT:.0%}, which all others "
        "had reached before."
    ),
    control_description=(
        f"At most {LITTLE_OF_IT:.0%} of the jump follows from twenty changes of the routing weights as large and at random, "
        "from twenty draws of other sums' patterns, and from routing weights carried over as many steps before the spike."
    ),
    results=("transplants", "by_variable", "part_ablations", "score_terms", SEEDS),
    judge=judge_spikes,
    draw=defer(f"{__package__}.draw", "draw_spikes"),
    fixed=Fixed(
        "2026-11-17",
        "the released run and assign-add with 200 sums and one control each; thresholds of 2026-11-16, with the released "
        "run in view",
    ),
)

CLAIMS: tuple[Claim, ...] = (AA10,)
