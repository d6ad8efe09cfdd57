"""AA11: one gradient step leads to composition, in the simplified model of the theorem."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bindscope.measures.arithmetic.one_step import DIRECTIONS, SHARP_BETA, chosen, scale_limit
from bindscope.studies.assign_add.judging import highest_of
from bindscope.studies.assign_add.published import REPORTED
from bindscope.studies.framework.claims import (
    Claim,
    Condition,
    Finding,
    Fixed,
    Quantity,
    all_hold,
    conclude,
    reaches,
    stays_within,
)
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.quantities import cell_of, difference_of

MOST_GAP = 0.2  # how far the memory may be from its prediction
MOST_OFF_DIAGONAL = 0.01  # of the predicted memory
LEAST_GAIN = 0.2  # in accuracy on sums that the step has not seen
MOST_CONTROL_GAIN = 0.05
MOST_ELSEWHERE = 0.1  # of the predicted memory, where attention starts on a token without a number
MOST = 0.5  # of the gradient's squared norm: what dominating must at least mean
UNSEEN = ("1 unseen", "2 unseen")
WHOLE, WITHOUT, SHUFFLED = DIRECTIONS


def judge_one_step(results: Mapping[str, xr.Dataset]) -> Finding:
    """AA11: the memory has the predicted size, and a step along the gradient composes."""
    dataset = results["one_step"]
    answers = chosen(dataset)
    memory, predicted = (float(dataset[name].sel(term="associative")) for name in ("coefficient", "prediction"))
    return conclude(
        (_predicted_size(dataset, memory, predicted), _shrinking_gap(dataset), _composes(answers), _dominates(dataset)),
        _controls(dataset, answers, predicted),
        (
            Quantity("memory over λ", memory, unit="1"),
            Quantity("predicted", predicted, unit="1"),
            Quantity("slot over λ", float(dataset.coefficient.sel(term="slot")), unit="1"),
            Quantity("predicted", float(dataset.prediction.sel(term="slot")), unit="1"),
            *_accuracies(answers, WHOLE),
            _named(dataset, "literal"),
            Quantity(f"… the memory alone, β = {SHARP_BETA:g}", _sharp(dataset, "literal", "associative")),
            Quantity("squared norm outside the terms, β = 3", float(dataset.norm_fraction.sel(part="rest"))),
            Quantity("memory 10 % off from λ", scale_limit(dataset, "associative"), unit="1"),
            Quantity("slot 10 % off from λ", scale_limit(dataset, "slot"), unit="1"),
        ),
        (
            Quantity("memory, shuffled binding", float(dataset.shuffled_margin), unit="1"),
            Quantity("memory, attention starts on '+'", float(dataset.operator_coefficient), unit="1"),
            _named(dataset, "operator"),
            *(
                cell_of(
                    f"2 variables, {direction}",
                    answers,
                    "after",
                    answers.attrs["n"],
                    direction=direction,
                    split="2 unseen",
                )
                for direction in (WITHOUT, SHUFFLED)
            ),
        ),
    )


def _predicted_size(dataset: xr.Dataset, memory: float, predicted: float) -> Condition:
    gap = abs(1 - memory / predicted)
    off = abs(float(dataset.off_diagonal)) / predicted
    words = f"the memory's coefficient is {gap:.0%} from its prediction and {off:.0%} of it lies off the diagonal"
    return Condition(gap <= MOST_GAP and off <= MOST_OFF_DIAGONAL, words, f"{words}: too far")


def _shrinking_gap(dataset: xr.Dataset) -> Condition:
    terms = dataset.sel(term="associative", beta=dataset.beta >= 1)
    gap = np.abs(1 - terms.measured / terms.predicted).transpose("modulus", "beta").values
    shrinks = bool((np.diff(gap, axis=0) < 0).all() and (np.diff(gap, axis=1) < 0).all())
    largest, smallest = gap[0, 0], gap[-1, -1]
    return Condition(
        shrinks,
        f"the gap shrinks with every larger β and p, from {largest:.0%} to {smallest:.1%}",
        "the gap does not shrink with every larger β and p",
    )


def _dominates(dataset: xr.Dataset) -> Condition:
    named, memory = _named(dataset, "literal"), _sharp(dataset, "literal", "associative")
    words = f"at β = {SHARP_BETA:g} the theorem's terms hold {named.number} of the squared norm, the memory itself {memory:.0%}"
    return Condition(reaches(named, MOST), words, f"{words}: they do not dominate")


def _named(dataset: xr.Dataset, focus: str) -> Quantity:
    """What the theorem's terms hold of the squared norm, each where it stands, also beside p_T; enumerated, so exact."""
    where = {"literal": "", "operator": ", attention starts on '+'"}[focus]
    return Quantity(f"squared norm in the terms, β = {SHARP_BETA:g}{where}", 1 - _sharp(dataset, focus, "rest"))


def _sharp(dataset: xr.Dataset, focus: str, part: str) -> float:
    return float(dataset.sharp_fraction.sel(focus=focus, part=part))


def _composes(answers: xr.Dataset) -> Condition:
    gains = [_gain(answers, WHOLE, split) for split in UNSEEN]
    words = (
        f"one step adds {gains[0].value:.0%} on unseen one-variable sums and {gains[1].value:.0%} on two-variable ones"
    )
    return Condition(
        all_hold(reaches(gain, LEAST_GAIN) for gain in gains),
        words,
        f"{words}: too little",
        f"{words}: perhaps too little",
    )


def _controls(dataset: xr.Dataset, answers: xr.Dataset, predicted: float) -> tuple[Condition, ...]:
    gain = highest_of(_gain(answers, direction, "2 unseen") for direction in (WITHOUT, SHUFFLED))
    shuffled = float(dataset.shuffled_margin) / predicted
    elsewhere = abs(float(dataset.operator_coefficient)) / predicted
    named = _named(dataset, "operator")
    begins = f"where attention starts on '+' the terms hold {named.number} of the squared norm"
    gains = "without the memory, or with the binding shuffled, two-variable sums"
    return (
        Condition(
            stays_within(gain, MOST_CONTROL_GAIN),
            f"{gains} gain nothing ({gain.number})",
            f"{gains} still gain {gain.number}",
            f"{gains} may gain something ({gain.number})",
        ),
        Condition(
            shuffled <= MOST_OFF_DIAGONAL and elsewhere <= MOST_ELSEWHERE,
            "the memory needs the binding, and attention that starts on the literal",
            f"the memory is there without the binding ({shuffled:.0%}) or without attention on the literal ({elsewhere:.0%})",
        ),
        Condition(stays_within(named, MOST), begins, f"{begins}, too much"),
    )


def _gain(answers: xr.Dataset, direction: str, split: str) -> Quantity:
    n = int(answers.attrs["n"])
    after = cell_of("after", answers, "after", n, direction=direction, split=split)
    return difference_of("gain", after, cell_of("before", answers, "before", n, split=split))


def _accuracies(answers: xr.Dataset, direction: str) -> tuple[Quantity, ...]:
    n = answers.attrs["n"]
    return tuple(
        quantity
        for split in UNSEEN
        for quantity in (
            cell_of(f"{split[0]} variable{'s' * (split[0] != '1')}, before", answers, "before", n, split=split),
            cell_of("after", answers, "after", n, direction=direction, split=split),
        )
    )


AA11 = Claim(
    id="AA11",
    title="One step composes",
    statement=(
        "Where '=' already attends to the literal operand and the MLP already adds, the gradient of the second layer's "
        "key-query matrix over one-variable sums is an associative memory: attend to the value whose variable is asked "
        "for. One step along it composes, also with two variables."
    ),
    paper=REPORTED["AA11"],
    measure=(
        "The exact population gradient of the simplified model at the run's modulus and number of variables, W₀ with "
        "β = 3; its terms by projection; then the task's own sums before and after one step from the trained pairs, of the "
        "size that answers most seen one-variable sums. No weight of the run is read."
    ),
    criterion=(
        f"The memory's coefficient is within {MOST_GAP:.0%} of its prediction with at most {MOST_OFF_DIAGONAL:.0%} off the "
        "diagonal, the gap shrinks with every larger β and p, and accuracy on unseen one-variable and two-variable sums "
        f"rises by at least {LEAST_GAIN:.0%}. At β = {SHARP_BETA:g} the theorem's terms hold at least {MOST:.0%} of the "
        "gradient's squared norm."
    ),
    control_description=(
        "The step without the memory, and one from sequences whose query asks for any variable, each at its own best "
        f"size, add at most {MOST_CONTROL_GAIN:.0%} on two-variable sums; shuffled binding leaves no diagonal, and "
        f"attention that starts on '+' at most {MOST_ELSEWHERE:.0%} of it and at β = {SHARP_BETA:g} at most {MOST:.0%} of the "
        "squared norm in the terms."
    ),
    results=("one_step",),
    judge=judge_one_step,
    draw=defer(f"{__package__}.draw", "draw_one_step"),
    fixed=Fixed(
        "2026-11-17",
        "the numbers at β = 3 and the 12 % outside the terms at β = 6; the other thresholds are of 2026-11-16, with a first "
        "prototype's numbers in view",
    ),
)

CLAIMS = (AA11,)
