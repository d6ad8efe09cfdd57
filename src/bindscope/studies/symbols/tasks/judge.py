"""AS4, AS5, AS6 and AS10: printing, repetition and majority."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import xarray as xr

from bindscope.studies.framework.claims import Claim, Condition, Finding, Fixed, conclude, not_testable
from bindscope.studies.symbols.efficiency.curves import (
    FEWER,
    HALF,
    MODEL_NAMES,
    PAPER,
    Curve,
    Point,
    choose_heads,
    curve_of,
)
from bindscope.studies.symbols.efficiency.evidence import (
    FITTED,
    draw_claim,
    fitted_control,
    missing_models,
    point_quantity,
    show_number,
    tell_runs,
    train_more,
)
from bindscope.studies.symbols.efficiency.judge import NOTHING, SOLVED, TIMES_FEWER, judge_fewer_sequences
from bindscope.studies.symbols.published import MAJORITY_N, PRINTED_N, RECURRENT_N, REPETITION_N, list_points

GUESSES = 0.4  # error of a model that guesses between the two values of a program, or worse
PRINTS = 0.25  # error of a model that prints the right one


def judge_print_symbolic(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS5: with both scalings unseen values are printed, from as many programs as leave the plain model guessing."""
    dataset, models = results["print-symbolic"], ("plain", "both")
    heads = choose_heads(dataset, models)
    if missing := missing_models(dataset, models, heads):
        return not_testable(missing)
    plain, both = (curve_of(dataset, model, heads) for model in models)
    quantities = tuple(point_quantity(curve, point) for curve in (plain, both) for point in curve.points)
    prints = next((point for point in both.points if point.value <= PRINTS), None)
    best = min(both.points, key=lambda point: point.value)
    if prints is None and both.points[-1].n < PRINTED_N:
        reason = (
            f"with both scalings the error is {show_number(best.value)} at best, up to n = {both.points[-1].n:,}; the "
            f"paper's falls by n = {PRINTED_N:,}, which {train_more(dataset, full=True)} trains"
        )
        return not_testable(reason, quantities)
    beside = None if prints is None else next((point for point in plain.points if point.n >= prints.n), None)
    if prints is not None and beside is None:
        reason = f"both scalings print from n = {prints.n:,} on, and no plain transformer was trained with as many"
        return not_testable(f"{reason}; {train_more(dataset, full=True)} does", quantities)
    error = f"with both scalings the error is {show_number(best.value)} at best, with n = {best.n:,}"
    criterion = [Condition(prints is not None, error, f"{error}, not {PRINTS:g} or less")]
    if beside is not None:
        guesses = f"the plain transformer's is {show_number(beside.value)} with n = {beside.n:,}"
        criterion.append(Condition(beside.value >= GUESSES, guesses, f"{guesses}: it does not need the scalings"))
    fitted, control = fitted_control(dataset, models, heads)
    return tell_runs(conclude(tuple(criterion), fitted, quantities, control), dataset, models, heads)


def judge_repetition(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS6: which scaling helps to see which symbol comes again, and what recurrent networks and an MLP make of it."""
    dataset, variants, beside = results["aba-abb"], ("plain", "vo", "kq", "both"), ("rnn", "lstm", "embedding-mlp")
    heads = PAPER if all(_has(dataset, model, PAPER, REPETITION_N) for model in variants) else FEWER
    missing = [model for model in variants if not _has(dataset, model, heads, REPETITION_N)]
    missing += [model for model in beside if not _has(dataset, model, heads, RECURRENT_N)]
    if missing:
        names = ", ".join(MODEL_NAMES[model] for model in missing)
        sizes = f"n = {REPETITION_N:,} (transformers) or n = {RECURRENT_N:,} (others)"
        return not_testable(f"there is no run of {names} with {sizes}, which {train_more(dataset)} trains")
    at = {model: _at(curve_of(dataset, model, heads), REPETITION_N) for model in variants}
    others = {model: _at(curve_of(dataset, model, heads), RECURRENT_N) for model in beside}
    quantities = tuple(
        point_quantity(curve_of(dataset, model, heads), point) for model, point in {**at, **others}.items()
    )
    criterion = _in_order(at, others)
    models = (*variants, *beside)
    fitted, control = fitted_control(dataset, models, heads)
    return tell_runs(conclude(criterion, fitted, quantities, control), dataset, models, heads)


def judge_majority(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS10: of as many sequences the plain transformer learns nothing, the modified one everything."""
    dataset, models = results["majority"], ("plain", "both")
    heads = choose_heads(dataset, models, fewest=1)
    if missing := missing_models(dataset, models, heads):
        return not_testable(missing)
    plain, both = (curve_of(dataset, model, heads) for model in models)
    quantities = tuple(point_quantity(curve, point) for curve in (plain, both) for point in curve.points)
    shared = sorted({int(n) for n in plain.n} & {int(n) for n in both.n})
    if not shared:
        return not_testable(f"no n was trained with and without scaling; {train_more(dataset)} does", quantities)
    without, scaled = (_at(curve, shared[-1]) for curve in (plain, both))
    if without.value >= NOTHING and scaled.value > SOLVED and shared[-1] < MAJORITY_N:
        reason = (
            f"with both scalings the test loss is {show_number(scaled.value)} at n = {shared[-1]:,}, the largest, and "
            f"{show_number(without.value)} without; the paper's n is {MAJORITY_N:,}, which {train_more(dataset, full=True)} trains"
        )
        return not_testable(reason, quantities)
    nothing = f"the plain transformer's test loss is {show_number(without.value)} at n = {shared[-1]:,}"
    solved = f"with both scalings it is {show_number(scaled.value)}"
    criterion = (
        Condition(without.value >= NOTHING, nothing, f"{nothing}: it does learn something"),
        Condition(scaled.value <= SOLVED, solved, f"{solved}: not solved"),
    )
    fitted, control = fitted_control(dataset, models, heads)
    return tell_runs(conclude(criterion, fitted, quantities, control), dataset, models, heads)


def _in_order(at: Mapping[str, Point], others: Mapping[str, Point]) -> tuple[Condition, ...]:
    """AS6's criterion: the four transformers in the paper's order, and the other networks where it has them."""
    losses = {model: point.value for model, point in ({**at, **others}).items()}
    shown = {model: show_number(loss) for model, loss in losses.items()}
    order = f"test loss is {shown['plain']} without scaling, {shown['vo']} with VO, {shown['kq']} with KQ"
    with_kq = f"{shown['kq']} with KQ and {shown['both']} with both at n = {REPETITION_N}"
    recurrent = f"{shown['rnn']} for the RNN and {shown['lstm']} for the LSTM at n = {RECURRENT_N:,}"
    between = losses["kq"] < min(losses["rnn"], losses["lstm"]) and max(losses["rnn"], losses["lstm"]) < HALF
    mlp = f"{shown['embedding-mlp']} for the MLP at n = {RECURRENT_N:,}"
    return (
        Condition(losses["plain"] > losses["vo"] > losses["kq"], order, f"{order}: not in this order"),
        Condition(max(losses["kq"], losses["both"]) <= SOLVED, with_kq, f"{with_kq}: not solved"),
        Condition(between, recurrent, f"{recurrent}: not between KQ's loss and {HALF:g}"),
        Condition(losses["embedding-mlp"] >= NOTHING, mlp, f"{mlp}: it learns something of unseen symbols"),
    )


def _has(dataset: xr.Dataset, model: str, heads: int, n: int) -> bool:
    return model in dataset.model.values and curve_of(dataset, model, heads).at(n) is not None


def _at(curve: Curve, n: int) -> Point:
    """The point of an n that is known to be there."""
    return next(point for point in curve.points if point.n == n)


def _paper(task: str, *models: str) -> str:
    """The paper's points of several models in a line."""
    return f"n: test loss; {'; '.join(f'{MODEL_NAMES[model]} {list_points(task, model)}' for model in models)}"


_FITTED = f"training sequences are learned (loss at most {FITTED:g}) at every n"

AS4 = Claim(
    id="AS4",
    title="Printing a number takes fewer programs with KQ",
    statement=(
        "To answer a=+1,b=-1,print(a) for names never seen, a transformer with a trained multiple of the identity in "
        "W_K W_Qᵀ needs a fraction of the programs."
    ),
    paper=_paper("print-real", "plain", "kq"),
    measure=(
        "The n of half loss with and without the scaling, from 'bindscope experiment print-real', and their ratio, as in AS2."
    ),
    criterion=(
        f"The plain transformer needs at least {TIMES_FEWER} times as many programs for half loss, by the lower end of the "
        "interval; where it never gets there, its largest n counts."
    ),
    control_description=(
        f"With and without scaling {_FITTED}, and the plain transformer is above {HALF:g} at the largest n that both were "
        "trained with."
    ),
    results=("print-real",),
    judge=partial(judge_fewer_sequences, "kq"),
    draw=partial(draw_claim, "AS4 · Printing a number takes fewer programs with KQ", None),
    fixed=Fixed("2026-11-16", "the paper's numbers, and first curves of 'print-real' as they came in"),
)

AS5 = Claim(
    id="AS5",
    title="Printing a value never seen takes both scalings",
    statement=(
        'To answer a="q",b="r",print(a) for values never seen, the plain transformer guesses between the two values up to '
        "very many programs; with both scalings it prints the right one from a few thousand on."
    ),
    paper=_paper("print-symbolic", "plain", "both").replace("loss", "error"),
    measure="Error on unseen symbols at the end of runs that differ in n, from 'bindscope experiment print-symbolic'.",
    criterion=(
        f"With both scalings the mean error falls to {PRINTS:g} or less at some n, and the plain transformer's is {GUESSES:g} "
        "or more at the first n, as large or larger, that it was trained with."
    ),
    control_description=f"In both models {_FITTED.replace('loss', 'error')}.",
    results=("print-symbolic",),
    judge=judge_print_symbolic,
    draw=partial(draw_claim, "AS5 · Printing a value never seen takes both scalings", None),
    fixed=Fixed("2026-11-16", "the paper's numbers, and first curves of 'print-symbolic' as they came in"),
)

AS6 = Claim(
    id="AS6",
    title="Repetition is seen by comparing, that is with KQ",
    statement=(
        "To see whether ABA or ABB was given, identity scaling of W_K W_Qᵀ helps most and that of W_V W_Oᵀ less; recurrent "
        "networks learn it from many more sequences, and an MLP does not."
    ),
    paper=_paper("aba-abb", "plain", "vo", "kq", "both", "rnn", "lstm", "embedding-mlp"),
    measure=(
        f"Test loss at n = {REPETITION_N} for the four transformers and at n = {RECURRENT_N:,} for the others, from "
        "'bindscope experiment aba-abb'."
    ),
    criterion=(
        f"The mean losses are in the order plain > VO > KQ, those with KQ and with both are at most {SOLVED:g}; the RNN's and "
        f"the LSTM's lie between KQ's and {HALF:g}; the MLP's is {NOTHING:g} or more."
    ),
    control_description=f"In all seven {_FITTED}.",
    results=("aba-abb",),
    judge=judge_repetition,
    draw=partial(draw_claim, "AS6 · Repetition is seen by comparing, that is with KQ", None),
    fixed=Fixed("2026-11-16", "the paper's numbers, and first curves of 'aba-abb' as they came in"),
)

AS10 = Claim(
    id="AS10",
    title="A majority is seen with scaling only",
    statement=(
        "Whether the first symbol fills more than half of six positions is not learned at all by the plain transformer from as "
        "many sequences as teach it to the one with both scalings."
    ),
    paper=_paper("majority-6", "plain", "both"),
    measure=(
        "Test loss with and without both scalings at the largest n that both were trained with, from 'bindscope experiment "
        "majority'."
    ),
    criterion=f"It is {NOTHING:g} or more without scaling and {SOLVED:g} or less with both.",
    control_description=f"In both models {_FITTED}.",
    results=("majority",),
    judge=judge_majority,
    draw=partial(draw_claim, "AS10 · A majority is seen with scaling only", None),
    fixed=Fixed("2026-11-16", "the paper's numbers, and first curves of 'majority' as they came in"),
)

CLAIMS: tuple[Claim, ...] = (AS4, AS5, AS6, AS10)
