"""AS11: a pretrained GPT-2 against one from scratch."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

from bindscope.studies.framework.claims import Claim, Condition, Finding, Fixed, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import defer
from bindscope.studies.symbols.efficiency.evidence import FITTED, crossing_quantity
from bindscope.studies.symbols.pretrained.compare import (
    Comparison,
    Shape,
    compare_pretrained,
    crossing_of,
    largest_shared_n,
    model_curve,
    shapes_of,
)
from bindscope.studies.symbols.pretrained.define import GPT2_TOKENS, PRETRAINED, SCRATCH, TORCH
from bindscope.studies.symbols.published import REPORTED

FEWER = 4.0  # times fewer sequences
_TRAIN = (
    "'bindscope experiment gpt2 --pretrained DIR --full', DIR a copy of GPT-2 with config.json and model.safetensors"
)


def judge_pretrained(results: Mapping[str, xr.Dataset]) -> Finding:
    """Compare the n of half loss; nothing can be said without GPT-2's own weights."""
    dataset = results["gpt2"]
    comparison, quantities = compare_pretrained(dataset), _quantities(dataset)
    if comparison is None:
        return not_testable(f"no pretrained GPT-2 was trained on the task; do so with {_TRAIN}", quantities)
    if not comparison.is_gpt2:
        return not_testable(
            f"the pretrained weights are a stand-in: they know {comparison.tokens:,} tokens and not GPT-2's {GPT2_TOKENS:,}; "
            f"test it with {_TRAIN}",
            quantities,
        )
    if comparison.scratch is None:
        return not_testable(f"no GPT-2 of {comparison.shape} was trained from scratch; add --full", quantities)
    if not comparison.ratio[0] >= FEWER and comparison.is_bound:
        return not_testable("half loss lies outside the n that were trained, so the ratio is not known", quantities)
    few = comparison.ratio[0] >= FEWER
    told = f"from scratch {comparison.scratch}, pretrained {comparison.pretrained}"
    criterion = (
        Condition(
            few,
            f"pretrained, it needs at least {FEWER:g} times fewer sequences ({told})",
            f"pretrained, it does not need {FEWER:g} times fewer sequences ({told})",
        ),
    )
    control, fitted = _fitted(dataset, comparison)
    return conclude(criterion, control, quantities, fitted)


def _quantities(dataset: xr.Dataset) -> tuple[Quantity, ...]:
    """The n of half loss of every model and shape, and the ratio where there is one."""
    comparison = compare_pretrained(dataset)
    names = {
        SCRATCH: "scratch",
        TORCH: "scratch, torch's start",
        PRETRAINED: "pretrained" if comparison is None else comparison.word,
    }
    found = [
        crossing_quantity(f"{name} ({shape}), n of half loss", crossing_of(dataset, model, shape), ": ")
        for model, name in names.items()
        for shape in shapes_of(dataset, model)
    ]
    if comparison is not None and comparison.scratch is not None:
        found += _compared_quantities(dataset, comparison)
    return tuple(found)


def _compared_quantities(dataset: xr.Dataset, comparison: Comparison) -> list[Quantity]:
    """How many times fewer sequences, where that is known; and both losses at the largest n that both were trained with."""
    value, low, high = comparison.ratio
    bound = ", at least" if comparison.is_bound else ""
    label = f"times fewer sequences, {comparison.word}{bound}"
    found = [] if value != value else [Quantity(label, value, low, high, unit="1")]
    n = largest_shared_n(dataset, comparison.shape)
    for model, word in ((SCRATCH, "scratch"), (PRETRAINED, comparison.word)):
        point = None if n is None else model_curve(dataset, model, comparison.shape).at(n)
        if point is not None:
            label = f"{word}, test loss at n = {point.n:,}"
            found.append(Quantity(label, point.value, point.low, point.high, len(point.seeds), unit="1"))
    return found


def _fitted(dataset: xr.Dataset, comparison: Comparison) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """Both must know their training sequences: else one was merely trained too short."""
    conditions, quantities = [], []
    for model, word in ((SCRATCH, "from scratch"), (PRETRAINED, "pretrained")):
        worst = _worst_training_loss(dataset, model, comparison.shape)
        quantities.append(Quantity(f"largest loss on training sequences, {word}", worst, unit="1"))
        conditions.append(
            Condition(
                worst <= FITTED,
                f"the model {word} has learned its training sequences at every n",
                f"the model {word} has not learned its training sequences at every n (loss {worst:.2g})",
            )
        )
    return tuple(conditions), tuple(quantities)


def _worst_training_loss(dataset: xr.Dataset, model: str, shape: Shape) -> float:
    return max(point.value for point in model_curve(dataset, model, shape, "train").points)


AS11 = Claim(
    id="AS11",
    title="Pretraining replaces data",
    statement="A pretrained GPT-2 learns to tell ABA from ABB for unseen symbols from far fewer sequences than one from scratch.",
    paper=REPORTED["AS11"],
    measure=(
        "Test loss on unseen symbols over n, from 'bindscope experiment gpt2': GPT-2 from scratch, and started from the "
        "weights in a directory, with the embeddings of tokens drawn at random for symbols; the n at which the mean loss over "
        "seeds falls below a half, interpolated in log n, with an interval from drawing the seeds again."
    ),
    criterion=(
        "The pretrained GPT-2 reaches half of the loss of knowing nothing from at least four times fewer sequences than a "
        "GPT-2 of the same shape from scratch."
    ),
    control_description="Both have learned their training sequences (loss at most 0.1) at every n.",
    results=("gpt2",),
    judge=judge_pretrained,
    draw=defer(f"{__package__}.draw", "draw_pretrained"),
    fixed=Fixed("2026-11-16", "the paper's numbers; no pretrained model was at hand"),
)

CLAIMS: tuple[Claim, ...] = (AS11,)
