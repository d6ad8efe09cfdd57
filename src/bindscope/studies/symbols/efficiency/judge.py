"""AS1, AS2, AS3 and AS7: who can tell equal symbols from different ones, and from how many sequences."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import xarray as xr

from bindscope.measures.stats.crossings import ratio_of
from bindscope.studies.framework.claims import (
    Claim,
    Condition,
    Finding,
    Fixed,
    Quantity,
    conclude,
    not_testable,
    reaches,
)
from bindscope.studies.symbols.efficiency.curves import (
    FEWER,
    HALF,
    MODEL_NAMES,
    Curve,
    choose_heads,
    curve_of,
    half_loss_n,
)
from bindscope.studies.symbols.efficiency.evidence import (
    FITTED,
    draw_claim,
    fitted_control,
    half_loss_quantity,
    missing_models,
    point_quantity,
    show_number,
    tell_runs,
    train_more,
)
from bindscope.studies.symbols.efficiency.gain import CHOSEN, at_chosen_gain, gain_control
from bindscope.studies.symbols.efficiency.gain import EXPERIMENT as GAIN
from bindscope.studies.symbols.published import LEARNED_N, MLP_LOSS, list_points

NOTHING = 0.9  # a test loss from here on is that of knowing next to nothing
SOLVED = 0.1
NOISE = 0.1  # a rise of the mean loss from one n to a larger one that is not looked at
FEWEST_SIZES = 3  # n in a curve
TIMES_FEWER = 4  # sequences, with identity scaling
FEW = 16  # sequences are few


def judge_transformer(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS1: the loss on unseen symbols falls from knowing nothing as training sequences become many."""
    dataset, experiment = results["same-different"], ("plain", "one-hot-mlp")
    heads = choose_heads(dataset, ["plain"], FEWEST_SIZES)
    if missing := missing_models(dataset, experiment, heads):
        return not_testable(missing)
    curve, beside = curve_of(dataset, "plain", heads), curve_of(dataset, "one-hot-mlp")
    quantities = tuple(point_quantity(curve, point) for point in curve.points)
    first, last = curve.points[0], curve.points[-1]
    if len(curve.points) < FEWEST_SIZES:
        few = f"there are runs of {len(curve.points)} n and {FEWEST_SIZES} or more are needed"
        return not_testable(f"{few}, which {train_more(dataset)} trains", quantities)
    if last.value >= HALF and last.n < LEARNED_N:
        return not_testable(_too_few(curve, dataset), quantities)
    ends = f"test loss goes from {show_number(first.value)} at n = {first.n:,} to {show_number(last.value)} at n = {last.n:,}"
    high = last.value if last.high is None else last.high
    excludes = "that is of one seed" if last.high is None else "its interval there excludes 1"
    rises = _rises(curve)
    criterion = (
        Condition(first.value > HALF > last.value, ends, f"{ends}, not from above a half to below it"),
        Condition(high < 1, excludes, f"its interval there reaches {show_number(high)}"),
        Condition(not rises, "no n does worse than a smaller one beyond noise", f"it rises at n = {rises}"),
    )
    fitted, fitted_quantities = fitted_control(dataset, ["plain"], heads)
    mlp = beside.points[-1]
    stays = f"an MLP on one-hot tokens stays at {show_number(mlp.value)} with n = {mlp.n:,}"
    leak = Condition(mlp.value >= NOTHING, stays, f"{stays}: the sequences give the answer away")
    control = (*fitted_quantities, point_quantity(beside, mlp))
    return tell_runs(conclude(criterion, (*fitted, leak), quantities, control), dataset, ["plain"], heads)


def judge_fewer_sequences(model: str, results: Mapping[str, xr.Dataset]) -> Finding:
    """AS2 and AS4: a model needs at most a quarter of the sequences that the plain transformer needs for half loss."""
    dataset, models = next(iter(results.values())), ("plain", model)
    if CHOSEN in results:
        dataset = at_chosen_gain(dataset, results[CHOSEN])
    heads = choose_heads(dataset, models)
    if missing := missing_models(dataset, models, heads):
        return not_testable(missing)
    plain, scaled = (half_loss_n(dataset, each, heads) for each in models)
    quantities: tuple[Quantity, ...] = (half_loss_quantity("plain", plain), half_loss_quantity(model, scaled))
    if scaled.censored == "above" and plain.censored == "above":
        reason = f"neither comes to half of the loss by n = {plain.largest:,}; larger n is trained by"
        return not_testable(f"{reason} {train_more(dataset, full=True)}", quantities)
    ratio, low, high = ratio_of(plain, scaled)
    least = ratio if low is None else low
    bound = "at least " if plain.censored == "above" or scaled.censored == "below" else ""
    words = (
        f"half loss takes the plain transformer {bound}{ratio:.3g} times as many sequences ({plain} against {scaled})"
    )
    fewer = f"{words}, {least:.2g} by the interval's lower end, not {TIMES_FEWER}"
    if scaled.censored == "above":
        fewer = f"with {MODEL_NAMES[model]} it does not come to half of the loss by n = {scaled.largest:,}"
    criterion = (Condition(_at_least(ratio, low, high), words, fewer),)
    label = "times as many sequences" + (", at least" if bound else "")
    quantities = (Quantity(label, ratio, low, high, unit="1"), *quantities)
    shown = curve_of(dataset, model, heads)
    quantities += tuple(point_quantity(shown, point) for point in shown.points)
    fitted, fitted_quantities = fitted_control(dataset, models, heads)
    few, few_quantities = _few_sequences(curve_of(dataset, "plain", heads), shown)
    control, control_quantities = [*fitted, *few], [*fitted_quantities, *few_quantities]
    if GAIN in results:
        chosen, chosen_quantities = gain_control(dataset, results[GAIN])
        control.append(chosen)
        control_quantities += chosen_quantities
    finding = conclude(criterion, tuple(control), quantities, tuple(control_quantities))
    return tell_runs(finding, dataset, models, heads)


def judge_mlps(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS3: MLPs stay at knowing nothing of unseen symbols, whatever n."""
    dataset, mlps = results["same-different"], ("one-hot-mlp", "embedding-mlp")
    if missing := missing_models(dataset, (*mlps, "plain")):
        return not_testable(missing)
    criterion, quantities = [], []
    for model in mlps:
        curve = curve_of(dataset, model)
        best = min(curve.points, key=lambda point: point.value)
        words = f"the {MODEL_NAMES[model]} is at {show_number(best.value)} at best, with n = {best.n:,}"
        criterion.append(Condition(best.value >= NOTHING, words, f"{words}: it learns something of unseen symbols"))
        quantities += [point_quantity(curve, point) for point in curve.points]
    fitted, fitted_quantities = fitted_control(dataset, mlps)
    plain = curve_of(dataset, "plain")
    last = plain.points[-1]
    words = f"the transformer comes to {show_number(last.value)} with n = {last.n:,}"
    learnable = Condition(last.value < HALF, words, f"{words}: so many sequences are too few for it as well")
    control = (*fitted_quantities, point_quantity(plain, last))
    return tell_runs(conclude(tuple(criterion), (*fitted, learnable), tuple(quantities), control), dataset, mlps)


def judge_relation_mlp(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS7: an MLP that is given XXᵀ needs a handful of sequences."""
    dataset, models = results["same-different"], ("relation-mlp", "embedding-mlp")
    if missing := missing_models(dataset, models):
        return not_testable(missing)
    curve, without = curve_of(dataset, "relation-mlp"), curve_of(dataset, "embedding-mlp")
    crossing = half_loss_n(dataset, "relation-mlp")
    at_most = crossing.bounds[1] if crossing.high is None or crossing.censored else crossing.high
    last = curve.points[-1]
    half = f"the n of half loss is {crossing}"
    end = f"it ends at {show_number(last.value)} with n = {last.n:,}"
    criterion = (
        Condition(at_most <= FEW, half, f"{half}, more than {FEW}"),
        Condition(last.value <= SOLVED, end, f"{end}: not solved"),
    )
    fitted, fitted_quantities = fitted_control(dataset, ["relation-mlp"])
    fewest = without.points[0]
    words = f"without XXᵀ the MLP is at {show_number(fewest.value)} with n = {fewest.n:,}"
    needed = Condition(fewest.value >= NOTHING, words, f"{words}: XXᵀ is not what helps")
    quantities = (
        half_loss_quantity("relation-mlp", crossing), *(point_quantity(curve, point) for point in curve.points)
    )  # fmt: skip
    control = (*fitted_quantities, point_quantity(without, fewest))
    return tell_runs(conclude(criterion, (*fitted, needed), quantities, control), dataset, models, FEWER)


def _at_least(ratio: float, low: float | None, high: float | None) -> bool | None:
    """Whether the ratio is TIMES_FEWER by its whole interval; of single seeds, which have none, by itself."""
    return reaches(Quantity("", ratio, low, high), TIMES_FEWER)


def _few_sequences(plain: Curve, scaled: Curve) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """At the largest n that both were trained with the plain transformer has not come to half of the loss."""
    known = {point.n for point in scaled.points}
    shared = [point for point in plain.points if point.n in known]
    if not shared:
        return (), ()
    point = shared[-1]
    words = (
        f"with as many sequences as {MODEL_NAMES[scaled.model]} got, {point.n:,}, it is at {show_number(point.value)}"
    )
    return (Condition(point.value > HALF, words, f"{words}: these are not few"),), (point_quantity(plain, point),)


def _rises(curve: Curve) -> str:
    """The n at which the loss is above that of a smaller n, by more than noise and more than the intervals allow."""
    found = []
    for index, point in enumerate(curve.points):
        for before in curve.points[:index]:
            apart = point.low is None or before.high is None or point.low > before.high
            if point.value > before.value + NOISE and apart:
                found.append(f"{point.n:,}")
                break
    return ", ".join(found)


def _too_few(curve: Curve, dataset: xr.Dataset) -> str:
    last = curve.points[-1]
    return (
        f"with n = {last.n:,}, the largest, the loss is {show_number(last.value)}; the paper's falls by n = {LEARNED_N:,}, "
        f"which {train_more(dataset, full=True)} trains"
    )


_FITTED = f"Training sequences are learned (loss at most {FITTED:g}) at every n"

AS1 = Claim(
    id="AS1",
    title="Enough sequences, and unseen symbols are answered",
    statement=(
        "A transformer trained on pairs of symbols tells whether two symbols that it never saw are the same, once it was "
        "trained on enough of them; with few it only remembers its own."
    ),
    paper=f"n: test loss {list_points('same-different', 'plain')}",
    measure=(
        "Test loss (1 is knowing nothing) on sequences of unseen symbols at the end of runs that differ in n, the number of "
        "training symbols and sequences, from 'bindscope experiment same-different': mean over seeds, Student's interval."
    ),
    criterion=(
        f"The mean test loss is above {HALF:g} at the smallest n and below it at the largest, where its interval excludes "
        f"1, and no n does worse than a smaller one by more than {NOISE:g} and with disjoint intervals."
    ),
    control_description=f"{_FITTED}, and an MLP on one-hot tokens stays at {NOTHING:g} or more at its largest n.",
    results=("same-different",),
    judge=judge_transformer,
    draw=partial(draw_claim, "AS1 · Enough sequences, and unseen symbols are answered", ("plain", "one-hot-mlp")),
    fixed=Fixed("2026-11-16", "the paper's numbers, and first curves of 'same-different' as they came in"),
)

AS2 = Claim(
    id="AS2",
    title="Identity scaling saves sequences",
    statement=(
        "With a trained multiple of the identity added to W_K W_Qᵀ and to W_V W_Oᵀ, a fraction of the training sequences is "
        "enough to tell equal unseen symbols from different ones."
    ),
    paper=f"n: test loss {list_points('same-different', 'both')} (plain: {list_points('same-different', 'plain')})",
    measure=(
        "The n of half loss, from which on the mean test loss is below a half, interpolated in log n, of the transformer "
        "with and without both scalings; the ratio of the two with an interval from drawing seeds again. Identity scaling "
        f"learns at the gain that another task chooses ('bindscope experiment {GAIN}', {CHOSEN})."
    ),
    criterion=(
        f"The plain transformer needs at least {TIMES_FEWER} times as many sequences for half loss, by the lower end of the "
        "interval; where it never gets there, its largest n counts."
    ),
    control_description=(
        f"{_FITTED} by both models, and the plain transformer is above {HALF:g} at the largest n that both were trained with. "
        "The gain at which the scalings learn is the one with the lowest validation loss on another task; where it is not, or "
        "not known, it is inconclusive."
    ),
    results=("same-different", GAIN, CHOSEN),
    judge=partial(judge_fewer_sequences, "both"),
    draw=partial(draw_claim, "AS2 · Identity scaling saves sequences", ("plain", "both", "kq", "vo", "mimetic")),
    fixed=Fixed(
        "2026-11-17",
        "all curves of 'same-different' at a gain of 100; not 'gain', nor curves at what it chooses; the factor of four since 2026-11-16, as first curves came in",
    ),
)

AS3 = Claim(
    id="AS3",
    title="MLPs learn nothing of unseen symbols",
    statement="MLPs, on one-hot tokens or on embeddings, fail on unseen symbols however many sequences train them.",
    paper=f"test loss about {MLP_LOSS:.1f} at every n",
    measure="Test loss of the two MLPs at the end of runs that differ in n, as in AS1.",
    criterion=f"The mean test loss of both MLPs is {NOTHING:g} or more at every n.",
    control_description=f"{_FITTED} by both, and the transformer falls below {HALF:g} at its largest n.",
    results=("same-different",),
    judge=judge_mlps,
    draw=partial(draw_claim, "AS3 · MLPs learn nothing of unseen symbols", ("one-hot-mlp", "embedding-mlp", "plain")),
    fixed=Fixed("2026-11-16", "the paper's numbers, and first curves of 'same-different' as they came in"),
)

AS7 = Claim(
    id="AS7",
    title="XXᵀ is what an MLP lacks",
    statement="An MLP that is given the inner products XXᵀ of its embeddings beside them needs a handful of sequences.",
    paper=f"n: test loss {list_points('same-different', 'relation-mlp')}",
    measure="Test loss and n of half loss of the MLP with XXᵀ at the end of runs that differ in n, as in AS1 and AS2.",
    criterion=(
        f"The n of half loss is at most {FEW}, by the upper end of its interval, and the mean test loss at the largest n at "
        f"most {SOLVED:g}."
    ),
    control_description=f"{_FITTED}, and without XXᵀ the MLP is at {NOTHING:g} or more at its smallest n.",
    results=("same-different",),
    judge=judge_relation_mlp,
    draw=partial(draw_claim, "AS7 · XXᵀ is what an MLP lacks", ("relation-mlp", "embedding-mlp")),
    fixed=Fixed("2026-11-16", "the paper's numbers, and first curves of 'same-different' as they came in"),
)

CLAIMS: tuple[Claim, ...] = (AS1, AS2, AS3, AS7)
