"""VB6, VB7 and VB11: subspaces of names and values, what is left of the heuristic, and what is not stored."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.studies.binding.published import REPORTED
from bindscope.studies.framework.claims import Claim, Condition, Finding, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of

KNOWN = 0.9  # fraction of pairs answered correctly below which there is nothing to look for
CARRIED = 0.8  # patching success inside a subspace
MOST_AT_RANDOM = 0.5  # what random subspaces may reach, as a fraction of what the found one does
SURPLUS = 0.2  # how many more answers survive without the circuit where line 1 is right
TIMES = 2.0  # how much more often line 1's constant is given than the last constant
SERVES = 0.5  # accuracy without the heuristic's heads where line 1 is wrong
HARM = 0.2  # how much more the circuit's heads must matter than random ones
READABLE = 0.5  # of the variables' values, above which a state would be stored
WHOLE = 0.2  # of whole program states
SOMETHING = 0.05  # how much better than with shuffled labels probes must be to be believed


def judge_subspaces(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB6: values and names have subspaces of their own, inside which patching works."""
    dataset = results["subspaces"]
    n = int(dataset.attrs["n_test"])
    weakest = float(dataset["accuracy"].min())
    if weakest < KNOWN:
        return not_testable(
            f"both programs of a pair are answered correctly in {weakest:.0%} of pairs, below {KNOWN:.0%}"
        )
    found, control, conditions, controls = [], [], [], []
    for quality in ("values", "names"):
        cell = dataset.sel(quality=quality)
        rank, layer, position = int(cell.search_rank), int(cell.search_layer), str(cell.search_position.values)
        inside = _condition_of(cell, "found", f"{quality}: {rank} dimensions, layer {layer}, {position}", n)
        others = {name: _condition_of(cell, name, f"{quality}: {name}", n) for name in ("random", "untrained model")}
        found.append(inside)
        words = f"{quality}: patching inside {rank} dimensions succeeds in {inside.value:.0%} of pairs"
        conditions.append(Condition(inside.value >= CARRIED, words, words))
        for name, other in others.items():
            said = f"{quality}, {name}: {other.value:.0%}"
            controls.append(Condition(other.value <= MOST_AT_RANDOM * inside.value, said, f"{said}, too many"))
        extra = ("shuffled labels", "whole stream", "rest")
        control += [*others.values(), *(_condition_of(cell, name, f"{quality}: {name}", n) for name in extra)]
    return conclude(tuple(conditions), tuple(controls), tuple(found), tuple(control))


def judge_retention(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB7: the heuristic is still there under the circuit."""
    dataset, lens = results["retention"], results["lens"]
    after = dataset.sel(step=int(dataset.attrs["after"]))

    def fraction(label: str, name: str, condition: str, group: str) -> Quantity:
        n = int(after.n.sel(group=group))
        return cell_of(label, after, name, n, condition=condition, group=group)

    right = fraction("no circuit, line 1 right: right answers", "accuracy", "circuit ablated", "line 1 right")
    wrong = fraction("no circuit, line 1 wrong: right answers", "accuracy", "circuit ablated", "line 1 wrong")
    falls_back = fraction("no circuit, line 1 wrong: line 1's constant", "line_1", "circuit ablated", "line 1 wrong")
    recent = fraction("no circuit, line 1 wrong: last constant", "most_recent", "circuit ablated", "line 1 wrong")
    serves = fraction("no heuristic, line 1 wrong: right answers", "accuracy", "heuristic ablated", "line 1 wrong")
    random = fraction("random heads, line 1 wrong: right answers", "accuracy", "random ablated", "line 1 wrong")
    at_end = lens.isel(step=-1, layer=-1)
    early, others = (_logit(at_end, name) for name in ("line 1", "others"))
    criterion = (
        Condition(
            right.value - wrong.value >= SURPLUS,
            "without the circuit's heads answers survive where line 1 is right",
            "without the circuit's heads answers do not survive where line 1 is right",
        ),
        Condition(
            falls_back.value >= TIMES * recent.value,
            f"where it is wrong line 1's constant is given {TIMES:g} times as often as the last constant or more",
            "where it is wrong line 1's constant is not given much more often than the last constant",
        ),
        Condition(
            serves.value >= SERVES,
            "without the heuristic's heads the circuit still answers where line 1 fails",
            "without the heuristic's heads answers are lost where line 1 fails too",
        ),
        Condition(
            (early.low or 0) > (others.high or 0),
            "at the end line 1's constant still has a higher logit than the other constants",
            "at the end line 1's constant has no higher logit than the other constants",
        ),
    )
    harm = random.value - wrong.value
    control = (
        Condition(
            harm >= HARM,
            f"as many random heads cost {harm:.0%} fewer answers than the circuit's",
            "random heads matter as much as the circuit's",
        ),
    )
    return conclude(criterion, control, (falls_back, right, wrong, serves, early), (recent, random, others))


def judge_probes(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB11: no single position holds the state of the program in linear form."""
    dataset = results["probes"]
    if not np.isfinite(dataset.late_accuracy.values).any():
        return not_testable("in these programs no variable has its root on line 3 or later")
    best = {name: _best_probe(dataset, name) for name in ("trained", "shuffled labels", "untrained model")}
    late = Quantity("variables with roots from line 3 on", _highest(dataset, "late_accuracy", "trained"))
    state = _best_state(dataset)
    line_1 = Quantity("line 1's constant for every variable", float(dataset.line_1_accuracy))
    trained, shuffled = best["trained"], best["shuffled labels"]
    if trained.value - shuffled.value < SOMETHING:
        return not_testable(
            "the probes read no more than with shuffled labels, so what they miss says nothing; try a larger --n",
            (trained,),
        )
    criterion = (
        Condition(
            late.value <= READABLE,
            f"at no layer and position can more than {READABLE:.0%} of the values with later roots be read",
            f"at some layer and position {late.value:.0%} of the values with later roots can be read",
        ),
        Condition(
            state.value <= WHOLE,
            f"whole states are read in at most {state.value:.1%} of programs",
            f"whole states are read in {state.value:.1%} of programs",
        ),
    )
    words = (
        f"the probes do read something: {trained.value:.0%} of all values, {shuffled.value:.0%} with shuffled labels"
    )
    control = (Condition(True, words, ""),)
    return conclude(criterion, control, (trained, late, state), (line_1, shuffled, best["untrained model"]))


def _condition_of(cell: xr.Dataset, name: str, label: str, n: int) -> Quantity:
    chosen = cell.sel(condition=name)
    fraction, low, high = (float(chosen[key]) for key in ("success_fraction", "success_low", "success_high"))
    return Quantity(label, fraction, low, high, n)


def _logit(lens: xr.Dataset, candidate: str) -> Quantity:
    return cell_of(f"logit of {candidate} at the end", lens, "logit", int(lens.attrs["n"]), "1", candidate=candidate)


def _best_probe(dataset: xr.Dataset, condition: str) -> Quantity:
    cells = dataset.sel(condition=condition)
    layer, position = np.unravel_index(np.nanargmax(cells.accuracy.values), cells.accuracy.shape)
    where = f"layer {int(dataset.layer[layer])}, {dataset.position.values[position]}"
    label = f"all variables, best position ({where})" if condition == "trained" else f"all variables, {condition}"
    return cell_of(label, cells.isel(layer=layer, position=position), "accuracy", int(dataset.attrs["n_test"]))


def _best_state(dataset: xr.Dataset) -> Quantity:
    cells = dataset.sel(condition="trained")
    layer, position = np.unravel_index(np.nanargmax(cells["state"].values), cells["state"].shape)
    return cell_of(
        "whole program states", cells.isel(layer=layer, position=position), "state", int(dataset.attrs["n_test"])
    )


def _highest(dataset: xr.Dataset, name: str, condition: str) -> float:
    return float(np.nanmax(dataset[name].sel(condition=condition).values))


VB6 = Claim(
    id="VB6",
    title="Subspaces of values and names",
    statement=(
        "Constants and variable names live in separate linear subspaces: principal components chosen by an L1-penalised "
        "classifier, 10 for numbers and 26 for names, carry them, and patching inside them is enough."
    ),
    paper=REPORTED["VB6"],
    measure=(
        "Components are fitted and chosen on one half of the pairs; on the other half only the part of the residual stream inside "
        "their span is taken from the counterfactual. Values: pairs that differ in the root's constant, at all positions of "
        "the chain before the last layer. Names: pairs that ask for another variable, at query and colon after a third "
        "of the layers."
    ),
    criterion=f"Patching inside the subspace succeeds in at least {CARRIED:.0%} of pairs, for values and for names.",
    control_description=(
        f"Random subspaces of equal dimension, and an untrained model of the same shape, reach at most "
        f"{MOST_AT_RANDOM:.0%} of that. Shuffled labels, the whole residual stream and the rest of it are shown beside them."
    ),
    results=("subspaces",),
    judge=judge_subspaces,
    draw=defer(f"{__package__}.draw", "draw_subspaces"),
)

VB7 = Claim(
    id="VB7",
    title="The heuristic is retained",
    statement=(
        "The circuit is built on top of the early-line heuristic, which stays: it still serves where it works, the "
        "circuit where it fails."
    ),
    paper=REPORTED["VB7"],
    measure=(
        "Heads whose mean ablation costs the last checkpoint most answers that line 1 does not hold (circuit), and heads "
        "whose ablation makes a checkpoint of the heuristic phase drop line 1's constant most (heuristic), chosen on one "
        "half of the programs and ablated on the other; the logit lens at the colon of the last checkpoint."
    ),
    criterion=(
        f"Without the circuit, accuracy is at least {SURPLUS:.0%} higher where line 1 is right than where it is wrong, and "
        f"there line 1's constant is given at least {TIMES:g} times as often as the last constant; without the heuristic "
        f"at least {SERVES:.0%} of the programs that line 1 gets wrong are answered; at the end line 1's constant has a "
        "higher logit than the program's other constants."
    ),
    control_description=(
        f"Random sets of as many other heads cost at least {HARM:.0%} fewer answers where line 1 is wrong than the "
        "circuit's heads."
    ),
    results=("retention", "lens"),
    judge=judge_retention,
    draw=defer(f"{__package__}.draw", "draw_retention"),
)

VB11 = Claim(
    id="VB11",
    title="No whole state is stored",
    statement="Linear probes at single positions read few of the variables' values and hardly ever the whole state.",
    paper=REPORTED["VB11"],
    measure=(
        "Ridge probes for the final value of every variable at every layer and position, fitted on some programs and "
        "tested on others. Chains are drawn so that many variables hold line 1's constant, so variables whose root is on "
        "line 3 or later are counted apart."
    ),
    criterion=(
        f"At no layer and position are more than {READABLE:.0%} of the values with roots from line 3 on, or more than "
        f"{WHOLE:.0%} of whole states, read correctly."
    ),
    control_description=(
        f"The probes are able to read: all values are read at least {SOMETHING:.0%} better than with shuffled labels."
    ),
    results=("probes",),
    judge=judge_probes,
    draw=defer(f"{__package__}.draw", "draw_probes"),
)

CLAIMS = (VB6, VB7, VB11)
