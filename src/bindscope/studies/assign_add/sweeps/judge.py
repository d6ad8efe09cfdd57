"""AA2 and AA3: how many pairs, and how many sums of two variables, training must show. Both read a sweep of runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import xarray as xr

from bindscope.intervals import student_interval
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
    TWO_VARIABLE_ROWS,
    Sweep,
    modulus_of,
    run_values,
    threshold_of,
)
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
from bindscope.studies.framework.experiments import count_runs, defer
from bindscope.studies.framework.quantities import fraction_of

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
    judged = (
        Quantity("threshold", fitted.value, fitted.low, fitted.high, fitted.n_runs, "1"),
        Quantity("rise, 10 to 90 %", fitted.rise, fitted.rise_low, fitted.rise_high, fitted.n_runs, "1"),
        _over_seeds(f"{sweep.asked.label}, at {values.min():g}", asked[values.argmin()]),
        _over_seeds(f"{sweep.asked.label}, at {values.max():g}", asked[values.argmax()]),
    )
    quantities = (*judged, *_other_threshold(dataset, sweep), *_other_sweep(sweep, results))
    finding = conclude(_criterion(values, *judged), control, quantities, beside)
    steps = f"{float(dataset.last_step.max()):,.0f} steps at most."
    return finding.adding(f"{count_runs(dataset)} runs of {dataset.attrs['preset']}, {steps}")


def _over_seeds(label: str, accuracies: np.ndarray) -> Quantity:
    """The mean of the seeds with Student's interval: what another training might give on average; none of one seed."""
    known = accuracies[np.isfinite(accuracies)]
    low, high = np.clip(student_interval(known), 0, 1) if len(known) > 1 else (None, None)
    return Quantity(f"{label}, mean of seeds", float(known.mean()), low, high, len(known))


def _criterion(
    values: np.ndarray, threshold: Quantity, rise: Quantity, first: Quantity, last: Quantity
) -> tuple[Condition, ...]:
    low, high = float(values.min()), float(values.max())
    where = f"the threshold is {threshold.value:.2f} [{threshold.low:.2f}–{threshold.high:.2f}]"
    takes = f"the rise takes {rise.value:.2f} [{rise.low:.2f}–{rise.high:.2f}] of the {high - low:.2f} swept"
    ends = f"accuracy goes from {first.number} at {low:g} to {last.number} at {high:g} (means of seeds)"
    fails_and_succeeds = all_hold([stays_within(first, FAILS), reaches(last, SUCCEEDS)])
    return (
        Condition(
            fails_and_succeeds,
            ends,
            f"{ends}, not from failing to succeeding",
            f"{ends}: seeds may not fail at the one end, or not succeed at the other",
        ),
        Condition(
            stays_within(rise, STEEP * (high - low)), f"{takes}: it is steep", f"{takes}: that is no threshold",
            f"{takes}: it may be no threshold",
        ),
        Condition(_inside(threshold, low, high), where, f"{where}, outside the sweep", f"{where}, not clearly inside the sweep"),
    )  # fmt: skip


def _inside(threshold: Quantity, low: float, high: float) -> bool | None:
    if not low < threshold.value < high:
        return False
    ends = (threshold.low, threshold.high)
    return True if all(end is not None and low < end < high for end in ends) else None


def _control(
    dataset: xr.Dataset, sweep: Sweep, fitted: Threshold
) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """What training shows is learned all along; shuffled runs show no threshold; neither does a straight line."""
    conditions, quantities = [], []
    for curve in sweep.trained:
        n = int(dataset.split_n.sel(split=curve.split))
        worst = fraction_of(f"{curve.label}, at worst", float(np.nanmin(curve.accuracies(dataset))), n)
        conditions.append(
            Condition(
                reaches(worst, LEARNED),
                f"sums of {curve.label} are learned at every value ({worst.number} at worst)",
                f"sums of {curve.label} are not learned everywhere ({worst.number} at worst), so training itself fails",
                f"sums of {curve.label} may not be learned everywhere ({worst.number} at worst)",
            )
        )
        quantities.append(worst)
    values, accuracies = run_values(dataset, sweep).ravel(), sweep.asked.accuracies(dataset).ravel()
    floor, span = 1 / modulus_of(dataset), float(values.max() - values.min())
    by_chance = fraction_of_shuffles(values, accuracies, floor, N_SHUFFLES)
    words = f"with the runs shuffled a curve fits as well in {by_chance:.0%} of orders".replace("%", " %")
    shuffled = fraction_of("as good a fit, shuffled", by_chance, N_SHUFFLES)
    conditions.append(Condition(stays_within(shuffled, MOST_BY_CHANCE), words, f"{words}, too many", words))
    quantities.append(shuffled)
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


def _other_sweep(sweep: Sweep, results: Mapping[str, xr.Dataset]) -> tuple[Quantity, ...]:
    """The threshold along another sweep of the same setting, where there is one to show."""
    other = sweep.shown_beside
    fitted = None if other is None or other.experiment not in results else threshold_of(
        results[other.experiment], other, other.asked
    )  # fmt: skip
    if other is None or fitted is None:
        return ()
    label = f"threshold, {other.title.lower()}"
    return (Quantity(label, fitted.value, fitted.low, fitted.high, fitted.n_runs, "1"),)


_draw = defer(f"{__package__}.draw", "draw_claim")
_CRITERION = (
    f"Mean accuracy of the seeds is at most {FAILS:.0%} at the smallest value and at least {SUCCEEDS:.0%} at the largest, the fitted "
    f"logistic rises from a tenth to nine tenths of its way within {STEEP:.0%} of the swept range, and its threshold lies "
    "inside that range, all with their intervals (of means over seeds, Student's)."
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
    fixed=Fixed("2026-11-17", "pair-fraction-small; its thresholds are of 2026-11-16, after trial runs of that sweep"),
)

AA3 = Claim(
    id="AA3",
    title="A few sums of two variables",
    statement="Sums of two variables come out right once training shows a certain fraction of them, and not below it.",
    paper=REPORTED["AA3"],
    measure=(
        "As the authors sweep it: at a frequency f the fraction f of the rows (first variable, n1, n2) is kept and the others "
        "are never shown; accuracy over every sum of 2add, 2var1 and 2var2 at the end of training, from 'bindscope "
        "experiment two-variable-rows' (or two-variable-rows-small); fitted as in AA2. Beside it the threshold where all "
        "such sums are shown, less often (two-variable-frequency)."
    ),
    criterion=_CRITERION,
    control_description=_CONTROL.format(trained="Sums of none and of one variable, of trained pairs,"),
    results=(TWO_VARIABLE_ROWS.experiment, TWO_VARIABLE_FREQUENCY.experiment),
    judge=partial(judge_sweep, TWO_VARIABLE_ROWS),
    draw=partial(_draw, "AA3", TWO_VARIABLE_ROWS),
    fixed=Fixed(
        "2026-11-17", "two-variable-frequency-small, which shows all rows less often; no run with rows removed"
    ),
)

CLAIMS: tuple[Claim, ...] = (AA2, AA3)
