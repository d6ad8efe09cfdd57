"""AA2 and AA3: how many pairs, and how many sums of two variables, training must show. Both read a sweep of runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import xarray as xr

from bindscope.measures.stats.thresholds import (
    FEWEST_VALUES,
    Threshold,
    fit_threshold,
    fraction_of_shuffles,
    straight_line,
)
from bindscope.studies.assign_add.published import REPORTED
from bindscope.studies.assign_add.sweeps.swept import (
    PAIR_FRACTION,
    TWO_VARIABLE_FREQUENCY,
    Sweep,
    modulus_of,
    run_values,
    show_percent,
    threshold_of,
)
from bindscope.studies.framework.claims import Claim, Condition, Finding, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import count_runs, defer
from bindscope.studies.framework.quantities import range_of

FAILS, SUCCEEDS = 0.5, 0.9  # accuracy at the two ends of the sweep
STEEP = 0.5  # of the swept range: a straight line takes 0.8 of it from a tenth to nine tenths of its way
LEARNED = 0.9
N_SHUFFLES = 200
MOST_BY_CHANCE = 0.05


def judge_sweep(sweep: Sweep, results: Mapping[str, xr.Dataset]) -> Finding:
    """Whether the asked accuracy has a threshold along the sweep, and what training shows has none."""
    dataset = results[sweep.experiment]
    fitted = threshold_of(dataset, sweep, sweep.asked)
    if fitted is None:
        return not_testable(
            f"the sweep has {dataset.sizes['variant']} values and {FEWEST_VALUES} or more are needed, which "
            f"'bindscope experiment {sweep.experiment}' trains"
        )
    values, asked = dataset[sweep.coordinate].values, sweep.asked.accuracies(dataset)
    control, beside = _control(dataset, sweep, fitted)
    quantities = (
        Quantity("threshold", fitted.value, fitted.low, fitted.high, fitted.n_runs, "1"),
        Quantity("rise, 10 to 90 %", fitted.rise, fitted.rise_low, fitted.rise_high, fitted.n_runs, "1"),
        range_of(f"{sweep.asked.label}, at {values.min():g}", asked[values.argmin()]),
        range_of(f"{sweep.asked.label}, at {values.max():g}", asked[values.argmax()]),
        *_other_threshold(dataset, sweep),
    )
    finding = conclude(_criterion(values, np.nanmean(asked, axis=1), fitted), control, quantities, beside)
    steps = f"{float(dataset.last_step.max()):,.0f} steps at most."
    return finding.adding(f"{count_runs(dataset)} runs of {dataset.attrs['preset']}, {steps}")


def _criterion(values: np.ndarray, means: np.ndarray, fitted: Threshold) -> tuple[Condition, ...]:
    first, last = float(means[values.argmin()]), float(means[values.argmax()])
    steep = fitted.rise <= STEEP * (values.max() - values.min())
    inside = values.min() < fitted.low and fitted.high < values.max()
    where = f"the threshold is {fitted.value:.2f} [{fitted.low:.2f}–{fitted.high:.2f}]"
    rise = f"the rise takes {fitted.rise:.2f} of the {values.max() - values.min():.2f} swept"
    ends = f"accuracy goes from {show_percent(first)} at {values.min():g} to {show_percent(last)} at {values.max():g}"
    return (
        Condition(first <= FAILS and last >= SUCCEEDS, ends, f"{ends}, not from failing to succeeding"),
        Condition(steep, f"{rise}: it is steep", f"{rise}: that is no threshold"),
        Condition(inside, where, f"{where}, not clearly inside the sweep"),
    )


def _control(
    dataset: xr.Dataset, sweep: Sweep, fitted: Threshold
) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """What training shows is learned all along; shuffled runs show no threshold; neither does a straight line."""
    conditions, quantities = [], []
    for curve in sweep.trained:
        worst = float(np.nanmin(curve.accuracies(dataset)))
        conditions.append(
            Condition(
                worst >= LEARNED,
                f"sums of {curve.label} are learned at every value ({show_percent(worst)} at worst)",
                f"sums of {curve.label} are not learned everywhere ({show_percent(worst)} at worst), so training itself fails",
            )
        )
        quantities.append(Quantity(f"{curve.label}, at worst", worst, n=fitted.n_runs))
    values, accuracies = run_values(dataset, sweep).ravel(), sweep.asked.accuracies(dataset).ravel()
    floor, span = 1 / modulus_of(dataset), float(values.max() - values.min())
    by_chance = fraction_of_shuffles(values, accuracies, floor, N_SHUFFLES)
    words = f"with the runs shuffled a curve fits as well in {by_chance:.0%} of orders".replace("%", " %")
    conditions.append(Condition(by_chance <= MOST_BY_CHANCE, words, words))
    quantities.append(Quantity("as good a fit, shuffled", by_chance, n=N_SHUFFLES))
    even = fit_threshold(values, straight_line(values, accuracies), floor, n_resamples=1).rise
    conditions.append(
        Condition(
            even > STEEP * span, f"a straight line would take {even:.2f}", "a straight line would pass as steep too"
        )
    )
    quantities.append(Quantity("rise of a straight line", even, unit="1"))
    return tuple(conditions), tuple(quantities)


def _other_threshold(dataset: xr.Dataset, sweep: Sweep) -> tuple[Quantity, ...]:
    fitted = threshold_of(dataset, sweep, sweep.beside)
    if fitted is None:
        return ()
    return (Quantity(f"threshold, {sweep.beside.label}", fitted.value, fitted.low, fitted.high, fitted.n_runs, "1"),)


_draw = defer(f"{__package__}.draw", "draw_claim")
_CRITERION = (
    f"Mean accuracy is at most {FAILS:.0%} at the smallest value and at least {SUCCEEDS:.0%} at the largest, the fitted "
    f"logistic rises from a tenth to nine tenths of its way within {STEEP:.0%} of the swept range, and the interval of "
    "its threshold lies inside that range."
)
_CONTROL = (
    f"{{trained}} reach {LEARNED:.0%} at every value; with the runs shuffled a curve fits as well in at most "
    f"{MOST_BY_CHANCE:.0%} of {N_SHUFFLES} orders; a straight line between the same ends would not pass as steep."
)

AA2 = Claim(
    id="AA2",
    title="Enough pairs, and all pairs",
    statement=(
        "Sums of pairs that training never shows come out right once training shows a certain fraction of all pairs, and "
        "hardly any below it."
    ),
    paper=REPORTED["AA2"],
    measure=(
        "Accuracy on held-out pairs of numbers at the end of runs that differ in the fraction of pairs trained on, from "
        "'bindscope experiment pair-fraction' (or pair-fraction-small); a logistic curve in that fraction, fitted by maximum "
        "likelihood, with an interval from drawing the runs again. The same for pairs held out in both orders."
    ),
    criterion=_CRITERION,
    control_description=_CONTROL.format(trained="Trained pairs"),
    results=("pair-fraction",),
    judge=partial(judge_sweep, PAIR_FRACTION),
    draw=partial(_draw, "AA2", PAIR_FRACTION),
)

AA3 = Claim(
    id="AA3",
    title="A few sums of two variables",
    statement="Sums of two variables come out right once they have a certain frequency in training, and not below it.",
    paper=REPORTED["AA3"],
    measure=(
        "Accuracy on two-variable sums of held-out pairs at the end of runs that differ in how often training shows sums "
        "of two variables, from 'bindscope experiment two-variable-frequency' (or two-variable-frequency-small); fitted "
        "as in AA2. The same for trained pairs."
    ),
    criterion=_CRITERION,
    control_description=_CONTROL.format(trained="Sums of none and of one variable, of trained pairs,"),
    results=("two-variable-frequency",),
    judge=partial(judge_sweep, TWO_VARIABLE_FREQUENCY),
    draw=partial(_draw, "AA3", TWO_VARIABLE_FREQUENCY),
)

CLAIMS: tuple[Claim, ...] = (AA2, AA3)
