"""AA10: what the two spikes are, judged by transplants between the checkpoints around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from bindscope.studies.assign_add.published import REPORTED
from bindscope.studies.framework.claims import Claim, Condition, Finding, Quantity, conclude, not_testable
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
    return conclude(criterion, _controls(first, second), quantities, _control_fractions(first, second))


def _routes(spike: xr.Dataset) -> tuple[Condition, ...]:
    """Where layer 2 looks, and the weights that decide it, carry the jump; the weights that compute do not."""
    number, carried = int(spike.spike), spike.total_fraction
    least = {part: float(carried.sel(part=part).min()) for part in (ROUTING, LOOKING)}
    most = float(np.abs(carried.sel(part=COMPUTING)).max())
    weakest = min(least, key=lambda part: least[part])
    words = f"of spike {number} both ways, the weights that compute carry {_percent(most)}"
    return (
        Condition(
            min(least.values()) >= MOST_OF_IT,
            f"routing and where layer 2 looks each carry at least {_percent(min(least.values()))} {words}",
            f"'{weakest}' carries only {_percent(least[weakest])} of spike {number} one of the two ways",
        ),
        Condition(
            most <= LITTLE_OF_IT,
            "",
            f"the weights that compute carry {_percent(most)} of spike {number}",
        ),
    )


def _last_variable(spike: xr.Dataset, by_variable: xr.Dataset) -> tuple[Condition, ...]:
    """Before the second spike one restricted variable is missing and no other; after it none is."""
    before, after = (_at(by_variable, int(spike[name])) for name in ("before_step", "after_step"))
    where = {"variable": str(spike.focus_variable.values), "operand": str(spike.focus_operand.values)}
    name, restricted = f"{where['variable']} as {where['operand']} operand", before.restricted.astype(bool)
    number = int(spike.spike)
    old, new = (float(at.accuracy.sel(where)) for at in (before, after))
    others = [
        f"{variable} as {operand} operand"
        for variable in before.variable.values
        for operand in before.operand.values
        if (variable, operand) != (where["variable"], where["operand"])
        and float(before.accuracy.sel(variable=variable, operand=operand)) < MOST_OF_IT
    ]
    return (
        Condition(
            bool(restricted.sel(where)) and old <= LITTLE_OF_IT and new >= MOST_OF_IT,
            f"{name}, which training never shows, goes from {_percent(old)} to {_percent(new)} at spike {number}",
            f"what rises most at spike {number} is {name}, from {_percent(old)} to {_percent(new)}"
            + ("" if bool(restricted.sel(where)) else ", which training does show"),
        ),
        Condition(
            not others,
            "every other variable was answered before",
            f"before spike {number} {', '.join(others[:3])} {'was' if len(others) == 1 else 'were'} not answered either",
        ),
    )


def _controls(first: xr.Dataset, second: xr.Dataset) -> tuple[Condition, ...]:
    """Every control that the run has: drift needs a checkpoint saved before the spike."""
    measured = [quantity for quantity in _control_fractions(first, second) if np.isfinite(quantity.value)]
    highest = max((quantity.value for quantity in measured), default=np.nan)
    drifted = any(quantity.label.endswith(DRIFT) for quantity in measured)
    names = ["as large a change at random", "other sums' patterns", *["as many steps without a spike"] * drifted]
    words = f"{', '.join(names[:-1])} and {names[-1]} carry {_percent(highest)}"
    return (Condition(highest <= LITTLE_OF_IT, f"{words} at most", f"{words}"),)


def _control_fractions(first: xr.Dataset, second: xr.Dataset) -> tuple[Quantity, ...]:
    quantities = []
    for spike in (first, second):
        number = int(spike.spike)
        quantities += [
            cell_of(f"spike {number}, routing changed at random", spike, "random_fraction", part=ROUTING),
            cell_of(f"spike {number}, pattern 2 of other sums", spike, "random_fraction", part=LOOKING),
            cell_of(f"spike {number}, {DRIFT}", spike, "drift_fraction", part=ROUTING),
        ]
    return tuple(quantities)


def _fractions(spike: xr.Dataset) -> tuple[Quantity, ...]:
    number = int(spike.spike)
    steps = f"{int(spike.before_step):,} → {int(spike.after_step):,}"
    names = {LOOKING: "where layer 2 looks", ROUTING: "routing", COMPUTING: "computing"}
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
        f"For both spikes, the weights that route, and where layer 2 looks by itself, reproduce and undo at least "
        f"{MOST_OF_IT:.0%} of the jump and the weights that compute at most {LITTLE_OF_IT:.0%}; and at the second spike "
        f"one restricted variable rises from at most {LITTLE_OF_IT:.0%} to at least {MOST_OF_IT:.0%}, which all others "
        "had reached before."
    ),
    control_description=(
        f"At most {LITTLE_OF_IT:.0%} of the jump follows from as large a change of the routing weights at random, from the "
        "patterns of other sums, and from routing weights carried over as many steps before the spike."
    ),
    results=("transplants", "by_variable", "part_ablations"),
    judge=judge_spikes,
    draw=defer(f"{__package__}.draw", "draw_spikes"),
)

CLAIMS: tuple[Claim, ...] = (AA10,)
