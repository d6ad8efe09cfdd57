"""AA4: where the two layers attend."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

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
    reaches,
    stays_within,
)
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of, fraction_of

TRAINED_SPLITS = ["0tr", "1tr", "2tr"]
KNOWN = 0.9  # accuracy as in training, below which a circuit is not yet to be looked for
THERE = 0.9  # of sequences in which the largest weights stand where the claim says
MOST_OTHERWISE = 0.5  # what a control may reach, as a fraction of what was found
SAID = {
    "operands": "layer 1, = attends to both operands (at most one variable)",
    "numbers": "layer 1, numbers attend to their variable",
    "values": "layer 2, = attends to both values",
}


def judge_attention(results: Mapping[str, xr.Dataset]) -> Finding:
    """AA4: the three attention patterns of the circuit are there at the end, and in neither control."""
    dataset = results["attention"]
    last = dataset.isel(step=-1)
    accuracy = float(last.accuracy.sel(split=TRAINED_SPLITS).min())
    if accuracy < KNOWN:
        return not_testable(f"sums as in training are answered correctly in {accuracy:.0%} of cases, below {KNOWN:.0%}")
    found, masses, control, conditions, controls = [], [], [], [], []
    for look, words in SAID.items():
        fraction = _judged(words, last, "fraction", look)
        fresh = _judged(f"untrained: {words}", dataset, "untrained_fraction", look)
        said = f"{words} in {fraction.number} of sequences"
        conditions.append(Condition(reaches(fraction, THERE), said, said))
        said = f"untrained, {words} in {fresh.value:.0%}"
        bound = MOST_OTHERWISE * fraction.value
        controls.append(Condition(stays_within(fresh, bound), said, f"{said}, too many"))
        found.append(fraction)
        n = int(dataset.attrs["n"]) * dataset.sizes["split"]
        masses.append(cell_of(f"weight there: {words}", last, "overall_mass", n, look=look))
        control.append(fresh)
    shuffled = shuffled_look(dataset)
    said = f"the values' columns of another sequence get the largest weights in {shuffled.value:.0%}"
    bound = MOST_OTHERWISE * found[-1].value
    controls.append(Condition(stays_within(shuffled, bound), said, f"{said}, too many"))
    beside = cell_of(f"{SAID['operands']}, all nine splits", last, "overall_fraction", n, look="operands")
    quantities = (*found, beside, *look_by_position(last, int(dataset.attrs["n"])), *masses)
    finding = conclude(tuple(conditions), tuple(controls), quantities, (*control, shuffled))
    return state_seeds("AA4", finding, results)


def _judged(label: str, dataset: xr.Dataset, name: str, look: str) -> Quantity:
    """One pattern over the splits it is judged on: ``=`` in layer 1 on sums with at most one variable, as the authors have it."""
    splits = [str(split) for split in dataset.split.values if look != "operands" or str(split)[0] in "01"]
    fraction = float(dataset[name].sel(look=look, split=splits).mean())
    return fraction_of(label, fraction, int(dataset.attrs["n"]) * len(splits))


def look_by_position(last: xr.Dataset, n: int) -> tuple[Quantity, Quantity]:
    """Layer 2's attention where every variable stands as in training, and where at least one stands where it never did."""
    restricted = [str(split) for split in last.split.values if "var" in str(split)]
    usual = [str(split) for split in last.split.values if "var" not in str(split)]
    fractions = last["fraction"].sel(look="values")
    return (
        fraction_of(
            f"{SAID['values']}, positions as in training", float(fractions.sel(split=usual).mean()), n * len(usual)
        ),
        fraction_of(f"{SAID['values']}, others", float(fractions.sel(split=restricted).mean()), n * len(restricted)),
    )


def shuffled_look(dataset: xr.Dataset) -> Quantity:
    """How often layer 2's largest weights stand where another sequence has its values, among sums with variables.

    Without variables the values stand in columns 13 and 14 of every sequence, so nothing could be shuffled.
    """
    splits = [str(split) for split in dataset.split.values if not str(split).startswith("0")]
    fraction = float(dataset.shuffled_fraction.isel(step=-1).sel(split=splits).mean())
    return fraction_of(
        "layer 2, = attends to another sequence's values", fraction, int(dataset.attrs["n"]) * len(splits)
    )


CLAIMS = (
    Claim(
        id="AA4",
        title="Where the layers attend",
        statement=(
            "In layer 1 the equals sign attends to the two operands and each assigned number to the variable before it; "
            "in layer 2 the equals sign attends to the numbers that the operands stand for."
        ),
        paper=REPORTED["AA4"],
        measure=(
            "Sequences of all nine splits, last checkpoint: in how many the two largest weights of = in layer 1 are at "
            "columns 13 and 14, the largest weight of an assigned number is at the token before it, and the two largest "
            "weights of = in layer 2 are at the operands' numbers; and how much weight is there."
        ),
        criterion=(
            f"Each of the three holds in at least {THERE:.0%} of sequences; the first is judged on sums with at most one "
            "variable, as the authors measure it, with all nine splits beside it."
        ),
        control_description=(
            "A fresh model of the same shape, and for layer 2 the columns of another sequence with as many variables, "
            f"reach at most {MOST_OTHERWISE:.0%} of that."
        ),
        results=("attention", SEEDS),
        judge=judge_attention,
        draw=defer(f"{__package__}.draw", "draw_looks"),
        fixed=Fixed(
            "2026-11-17",
            "the released run and assign-add; thresholds of 2026-11-16, the splits of the first since the authors' "
            "reading was known",
        ),
    ),
)
