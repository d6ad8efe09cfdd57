"""VB6, VB7 and VB11: subspaces of names and values, what is left of the heuristic, and what is not stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import xarray as xr

from bindscope.studies.binding.published import REPORTED
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
from bindscope.studies.framework.quantities import cell_of, difference_of, times

KNOWN = 0.9  # fraction of pairs answered correctly below which there is nothing to look for
CARRIED = 0.8  # patching success inside a subspace
MOST_AT_RANDOM = 0.5  # what random subspaces may reach, as a fraction of what the found one does
GATES = {  # what must not carry → in words
    "random": "random",
    "untrained model": "untrained model",
    "shuffled labels": "fitted to shuffled labels",
    "other subspace": "the other's subspace",
}
BEYOND_CHANCE = 0.1  # how far answers without the answer heads must exceed those of a random variable
SERVES = 0.5  # accuracy without the heuristic heads where line 1 is wrong
SERVED = 0.05  # how many more answers are lost without them where line 1 is right
HARM = 0.2  # how much more the answer heads must matter than random ones
ANSWERS_WITHOUT = {  # → label, which answers, without whose heads, of which programs
    "right": ("no answer heads, line 1 right: right answers", "accuracy", "circuit", "line 1 right"),
    "wrong": ("no answer heads, line 1 wrong: right answers", "accuracy", "circuit", "line 1 wrong"),
    "falls back": ("no answer heads, line 1 wrong: line 1's constant", "line_1", "circuit", "line 1 wrong"),
    "fails": ("no heuristic heads, line 1 wrong: right answers", "accuracy", "heuristic", "line 1 wrong"),
    "random": ("random heads, line 1 wrong: right answers", "accuracy", "random", "line 1 wrong"),
}
MATCHED = {  # → label, comparison over matched programs
    "surplus": ("no answer heads: surplus where line 1 is right, beyond a random variable's", "surplus beyond it"),
    "given": (
        "no answer heads, line 1 wrong: line 1's constant, beyond a random variable",
        "line 1 beyond random variable",
    ),
    "serves": ("no heuristic heads: answers lost where line 1 is right, above where it is wrong", "heuristic serves"),
    "idle": ("no random heads: the same", "random heads serve"),
    "null": ("surplus of a random variable's value", "surplus, random variable"),
}
READABLE = 0.5  # of the variables' values, above which a state would be stored
WHOLE = 0.2  # of whole program states
SOMETHING = 0.05  # how much better than controls probes must be to be believed
ARTICLES = {"shuffled labels": "shuffled labels", "untrained model": "an untrained model"}


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
        found.append(inside)
        words = f"{quality}: patching inside {rank} dimensions succeeds in {inside.value:.0%} of pairs"
        conditions.append(Condition(reaches(inside, CARRIED), words, words))
        for name, meaning in GATES.items():
            other = _condition_of(cell, name, f"{quality}: {meaning}", n)
            beyond = difference_of("", other, times(inside, MOST_AT_RANDOM))
            said = f"{quality}, {meaning}: {other.value:.0%}"
            controls.append(Condition(stays_within(beyond, 0), said, f"{said}, too many"))
            control.append(other)
        control += [_condition_of(cell, name, f"{quality}: {name}", n) for name in ("whole stream", "rest")]
    return conclude(tuple(conditions), tuple(controls), tuple(found), tuple(control))


def judge_retention(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB7: the heuristic is still there under the circuit."""
    found = _read_retention(results["retention"], results["lens"])
    shown = ("surplus", "given", "serves", "fails", "line 1", "right", "wrong", "falls back")
    beside = ("null", "idle", "random", "others")
    finding = conclude(
        _heuristic_is_there(found),
        _random_heads_are_not(found),
        tuple(found[name] for name in shown),
        tuple(found[name] for name in beside),
    )
    heads = results["retention"].attrs
    named = f"The answer heads are {heads['circuit']}, the heuristic heads {heads['heuristic']}."
    return replace(finding, reason=f"{finding.reason} {named}")


def _read_retention(retention: xr.Dataset, lens: xr.Dataset) -> dict[str, Quantity]:
    """What the last checkpoint answers without some heads, differences over matched programs, and logits at the end."""
    after = retention.sel(step=int(retention.attrs["after"]))
    fractions = {
        name: cell_of(label, after, answer, int(after.n.sel(group=group)), condition=f"{heads} ablated", group=group)
        for name, (label, answer, heads, group) in ANSWERS_WITHOUT.items()
    }
    differences = {
        name: cell_of(label, after, "difference", int(after.n_matched), comparison=comparison)
        for name, (label, comparison) in MATCHED.items()
    }
    end = lens.isel(step=-1, layer=-1)
    return fractions | differences | {candidate: _logit(end, candidate) for candidate in ("line 1", "others")}


def _heuristic_is_there(found: Mapping[str, Quantity]) -> tuple[Condition, ...]:
    """VB7's criterion."""
    return (
        Condition(
            reaches(found["surplus"], BEYOND_CHANCE),
            "without the answer heads, answers survive where line 1 is right, beyond what the value of a random variable "
            "would get right",
            "without the answer heads, answers do not survive where line 1 is right, beyond what the value of a random "
            "variable would get right",
        ),
        Condition(
            reaches(found["given"], BEYOND_CHANCE),
            "where it is wrong line 1's constant is given more often than a random variable holds it",
            "where it is wrong line 1's constant is given about as often as a random variable holds it",
        ),
        Condition(
            reaches(found["fails"], SERVES),
            "without the heuristic heads the model still answers where line 1 fails",
            "without the heuristic heads answers are lost where line 1 fails too",
        ),
        Condition(
            reaches(found["serves"], SERVED),
            "without them more answers are lost where line 1 is right: there they still serve",
            "without them hardly more answers are lost where line 1 is right: there they do not serve any more",
        ),
        Condition(
            reaches(difference_of("", found["line 1"], found["others"]), 0),
            "at the end line 1's constant still has a higher logit than the other constants",
            "at the end line 1's constant has no higher logit than the other constants",
        ),
    )


def _random_heads_are_not(found: Mapping[str, Quantity]) -> tuple[Condition, ...]:
    """VB7's control: random heads are neither answer heads nor heuristic heads."""
    harm = difference_of("", found["random"], found["wrong"])
    return (
        Condition(
            reaches(harm, HARM),
            f"as many random heads cost {harm.value:.0%} fewer answers than the answer heads",
            "random heads matter as much as the answer heads",
        ),
        Condition(
            stays_within(found["idle"], SERVED),
            "random heads do not serve where line 1 is right",
            "random heads seem to serve where line 1 is right too",
        ),
    )


def judge_probes(results: Mapping[str, xr.Dataset]) -> Finding:
    """VB11: no single position holds the state of the program in linear form."""
    dataset = results["probes"]
    if not np.isfinite(dataset.late_accuracy.values).any():
        return not_testable("in these programs no variable has its root on line 3 or later")
    trained = _best_probe(dataset, "trained", "accuracy", "all variables")
    late = _best_probe(dataset, "trained", "late_accuracy", "variables with roots from line 3 on")
    state = _best_probe(dataset, "trained", "state", "whole program states")
    line_1 = Quantity("line 1's constant for every variable", float(dataset.line_1_accuracy))
    criterion = (
        Condition(
            stays_within(late, READABLE),
            f"at no layer and position can more than {READABLE:.0%} of the values with later roots be read",
            f"at some layer and position {late.value:.0%} of the values with later roots can be read",
        ),
        Condition(
            stays_within(state, WHOLE),
            f"whole states are read in at most {state.value:.1%} of programs",
            f"whole states are read in {state.value:.1%} of programs",
        ),
    )
    control, beside = [], [line_1]
    for name in ("shuffled labels", "untrained model"):
        other = _best_probe(dataset, name, "accuracy", f"all variables, {name}")
        words = f"the probes read {trained.value:.0%} of all values, {other.value:.0%} with {ARTICLES[name]}"
        misses = f"{words}: what they miss says little of what training made"
        control.append(Condition(reaches(difference_of("", trained, other), SOMETHING), words, misses))
        beside.append(other)
    return conclude(criterion, tuple(control), (trained, late, state), tuple(beside))


def _condition_of(cell: xr.Dataset, name: str, label: str, n: int) -> Quantity:
    chosen = cell.sel(condition=name)
    fraction, low, high = (float(chosen[key]) for key in ("success_fraction", "success_low", "success_high"))
    return Quantity(label, fraction, low, high, n)


def _logit(lens: xr.Dataset, candidate: str) -> Quantity:
    return cell_of(f"logit of {candidate} at the end", lens, "logit", int(lens.attrs["n"]), "1", candidate=candidate)


def _best_probe(dataset: xr.Dataset, condition: str, name: str, label: str) -> Quantity:
    """What is read best at any layer and position: for the most that is stored an honest bound, as the best is chosen."""
    cells = dataset.sel(condition=condition)
    layer, position = np.unravel_index(np.nanargmax(cells[name].values), cells[name].shape)
    where = f"layer {int(dataset.layer[layer])}, {dataset.position_name.values[position]}"
    return cell_of(
        f"{label}, best ({where})", cells.isel(layer=layer, position=position), name, int(dataset.attrs["n_test"])
    )


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
    criterion=(
        f"Patching inside the subspace succeeds in at least {CARRIED:.0%} of pairs, for values and for names, by the whole "
        "interval."
    ),
    control_description=(
        f"None of these reaches more than {MOST_AT_RANDOM:.0%} of that, for values or for names: random subspaces of equal "
        "dimension; an untrained model of the same shape; a subspace fitted in the same way to shuffled labels; the other's "
        "subspace at the same layer and positions (that of names must not move values, nor that of values names). The whole "
        "residual stream and the rest of it are shown beside them."
    ),
    results=("subspaces",),
    judge=judge_subspaces,
    draw=defer(f"{__package__}.draw", "draw_subspaces"),
    fixed=Fixed(
        "2026-11-17",
        "binding-laptop and binding-plain, with all controls but the cross-swap; where to look was chosen on 2026-11-16 after sweeping "
        "layers and positions of both",
    ),
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
        "Heads whose mean ablation costs the last checkpoint most answers that line 1 does not hold (answer heads: ablated, "
        "they need not be the heads whose patches make VB4's circuit), and heads "
        "whose ablation makes a checkpoint of the heuristic phase drop line 1's constant most (heuristic heads), chosen on one "
        "half of the programs and ablated on the other; the logit lens at the colon of the last checkpoint."
    ),
    criterion=(
        f"Without the answer heads, on programs matched for how many of their variables hold line 1's digit, the surplus of right "
        f"answers where line 1 is right exceeds that of a model that gives the value of a random variable by {BEYOND_CHANCE:.0%}; "
        f"where line 1 is wrong, its constant is given {BEYOND_CHANCE:.0%} more often than a random variable holds it. Without "
        f"the heuristic heads at least {SERVES:.0%} of the programs that line 1 gets wrong are answered, and matched programs that it "
        f"gets right lose {SERVED:.0%} more answers than those it gets wrong. At the end line 1's constant has a higher logit "
        "than the program's other constants. Each by its whole interval."
    ),
    control_description=(
        f"Random sets of as many other heads cost at least {HARM:.0%} fewer answers where line 1 is wrong than the answer "
        f"heads, and at most {SERVED:.0%} more where it is right than where it is wrong."
    ),
    results=("retention", "lens"),
    judge=judge_retention,
    draw=defer(f"{__package__}.draw", "draw_retention"),
    fixed=Fixed(
        "2026-11-17",
        "binding-laptop and binding-plain without the random variable beside them (surpluses of 35 and 20 points, where it alone has about 24); "
        "what it does on these programs, and what is lost where line 1 is right, only after",
    ),
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
        f"{WHOLE:.0%} of whole states, read correctly, by the whole interval."
    ),
    control_description=(
        f"The probes are able to read, and what they read was learned: all values are read at least {SOMETHING:.0%} better than "
        "with shuffled labels, and than from an untrained model of the same shape, each at its best layer and position."
    ),
    results=("probes",),
    judge=judge_probes,
    draw=defer(f"{__package__}.draw", "draw_probes"),
    fixed=Fixed(
        "2026-11-17", "binding-laptop and binding-plain, with shuffled labels and the untrained model beside them"
    ),
)

CLAIMS = (VB6, VB7, VB11)
