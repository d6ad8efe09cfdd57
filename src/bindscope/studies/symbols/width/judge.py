"""AS8 and AS9: wider models need more symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from bindscope.measures.stats.ranks import rank_correlation
from bindscope.studies.framework.claims import Claim, Condition, Finding, Fixed, Quantity, conclude, not_testable
from bindscope.studies.framework.experiments import count_runs, defer
from bindscope.studies.framework.quantities import range_of
from bindscope.studies.symbols.published import COPY_FIRST_N_MODIFIED, REPORTED
from bindscope.studies.symbols.width.widths import (
    FEWEST_WIDTHS,
    SOLVED,
    FirstN,
    choose_heads,
    find_first_n,
    largest_n,
    last_step,
    mean_over_seeds,
    ratio_bounds,
    split_error,
    split_loss,
    widths_of,
)

REACHES = 0.8  # of a training symbol's reading, with identity scaling
STRAY = 0.1  # of it, for another symbol's answer
GROWS = 2.0  # by how much the widest must differ from the narrowest
ORDERED = 0.7  # rank correlation with width
SCALED_MOST = 2 * COPY_FIRST_N_MODIFIED  # one step of the trained n above the paper's
TRAINED_ERROR = 0.01  # of training symbols: more, and training itself fails
NOTHING = 0.9  # the test loss of a model that has learned next to nothing about unseen symbols
FITTED = 0.05  # the training loss of one that has learned its training sequences
TRAIN = "'bindscope experiment {name}'"


def judge_copy(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS8: the first n that suffices for copying grows with width, and does not with identity scaling."""
    dataset = choose_heads(results["copy"])
    plain, scaled = (find_first_n(dataset, model) for model in ("plain", "both"))
    if min(len(plain), len(scaled)) < FEWEST_WIDTHS:
        return not_testable(
            f"{len(plain)} widths without and {len(scaled)} with identity scaling were trained and {FEWEST_WIDTHS} or "
            f"more are needed of each, which {TRAIN.format(name='copy')} trains"
        )
    rows = (("first n", plain), ("with identity scaling", scaled))
    quantities = tuple(_first_quantity(label, first) for label, found in rows for first in found)
    low, high = ratio_bounds(plain[0], plain[-1])
    if low < GROWS <= high:
        return not_testable(_undecided(plain[0], plain[-1]), quantities)
    worst = float(np.nanmax(split_error(dataset, "train")))
    learned = Condition(
        worst <= TRAINED_ERROR,
        f"training symbols are copied at every width (error {100 * worst:.1f} % at worst)",
        f"training symbols are not copied in every run (error {100 * worst:.1f} % at worst): training itself fails",
    )
    early, early_control, *numbers = _judge_directions(results["copy_directions"])
    return conclude(
        (*_copy_criterion(plain, scaled), early),
        (learned, *early_control),
        (*quantities, *numbers[0]),
        (Quantity("error on training symbols, at worst", worst, n=count_runs(dataset)), *numbers[1]),
    )


def _judge_directions(
    dataset: xr.Dataset,
) -> tuple[Condition, tuple[Condition, ...], tuple[Quantity, ...], tuple[Quantity, ...]]:
    """Why: early updates of W_V W_O act on training symbols and, the wider the model, the less on unseen ones."""
    step, widths = last_step(dataset), widths_of(dataset)
    found = [mean_over_seeds(dataset, "ratio", "plain", width, step, f"reach, width {width:,}") for width in widths]
    scaled = [mean_over_seeds(dataset, "ratio", "both", width, step) for width in widths]
    other = [mean_over_seeds(dataset, "mismatched", "plain", width, step).value for width in widths]
    seen = [mean_over_seeds(dataset, "seen", "plain", width, step).value for width in widths]
    lowest, stray = min(each.value for each in scaled), max(abs(a / b) for a, b in zip(other, seen))
    change = (
        f"after {step} steps unseen symbols get {found[0].value:.2f} of what training symbols get at width {widths[0]}, and "
        f"{found[-1].value:.2f} at {widths[-1]:,}"
    )
    predicted = dataset.predicted_ratio.sel(model="plain").mean("seed").values
    gap = max(abs(each.value / ratio - 1) for each, ratio in zip(found, predicted))
    return (
        Condition(found[-1].value * GROWS <= found[0].value, change, f"{change}: no loss of reach"),
        (
            Condition(
                lowest >= REACHES,
                f"with identity scaling they get {lowest:.2f} or more",
                f"with identity scaling they get as little as {lowest:.2f}",
            ),
            Condition(
                stray <= STRAY,
                "another symbol's answer is not raised",
                f"another symbol's answer is raised too, by {stray:.2f} of what training symbols get",
            ),
        ),
        (*found, Quantity("reach, furthest from the prediction", gap, n=len(found))),
        (
            Quantity("reach with identity scaling, at least", lowest, n=scaled[0].n, unit="1"),
            Quantity("reading of another's answer, at most", stray, n=found[0].n),
        ),
    )


def _copy_criterion(plain: Sequence[FirstN], scaled: Sequence[FirstN]) -> tuple[Condition, ...]:
    low, _ = ratio_bounds(plain[0], plain[-1])
    ends = f"width {plain[0].width} needs n = {plain[0]} and width {plain[-1].width:,} {plain[-1]}"
    order = rank_correlation([first.width for first in plain], [first.n for first in plain])
    most = max(scaled, key=lambda first: first.n)
    grown = scaled[-1].n / scaled[0].n if scaled[0].reached else np.inf
    change = f"{scaled[0]} at width {scaled[0].width} and {scaled[-1]} at {scaled[-1].width:,}"
    return (
        Condition(low >= GROWS, f"{ends}: inverse scaling", f"{ends}: that is no growth"),
        Condition(
            order >= ORDERED,
            f"the first n follows width (rank correlation {order:.2f})",
            f"the first n does not follow width (rank correlation {order:.2f})",
        ),
        Condition(
            most.n <= SCALED_MOST,
            f"with identity scaling n = {most.n:,.0f} suffices at every width",
            f"with identity scaling width {most.width:,} still needs {most}",
        ),
        Condition(
            grown <= GROWS,
            f"with identity scaling the first n does not grow ({change})",
            f"with identity scaling the first n grows too ({change})",
        ),
    )


def _first_quantity(label: str, first: FirstN) -> Quantity:
    """The first n with the range over seeds; of one seed, or where none was found in some, no range."""
    known = first.by_seed if len(first.by_seed) > 1 and max(first.by_seed) < np.inf else None
    label = f"{label}, width {first.width:,}"
    if not first.reached:
        return Quantity(f"{label}: more than", float(first.largest), n=len(first.by_seed), unit="step")
    low, high = (min(known), max(known)) if known else (None, None)
    at_most = "" if first.below else ": at most"
    return Quantity(f"{label}{at_most}", first.n, low, high, len(first.by_seed), "step")


def _undecided(narrow: FirstN, wide: FirstN) -> str:
    """Which bound leaves the ratio open."""
    ends = f"width {narrow.width} needs n = {narrow} and width {wide.width:,} {wide}, which leaves the growth open"
    if not wide.reached:
        return f"{ends}; train n above {wide.largest:,} at width {wide.width:,}"
    return f"{ends}; train smaller n at width {narrow.width}"


def judge_width(results: Mapping[str, xr.Dataset]) -> Finding:
    """AS9: at one n, the loss on unseen symbols grows with width."""
    dataset = largest_n(results["width"])
    if dataset.sizes["variant"] < FEWEST_WIDTHS:
        return not_testable(
            f"{dataset.sizes['variant']} widths were trained at one n and {FEWEST_WIDTHS} or more are needed, which "
            f"{TRAIN.format(name='width')} trains"
        )
    widths, losses, n = dataset.width.values.astype(int), split_loss(dataset), int(dataset.n.values[0])
    means = np.nanmean(losses, 1)
    quantities = tuple(_loss_quantity(f"test loss, width {width}", row) for width, row in zip(widths, losses))
    if means.min() >= NOTHING:
        reason = f"at n = {n:,} no width learns anything about unseen symbols (loss {means.min():.2f} at best)"
        return not_testable(f"{reason}; more training sequences are needed", quantities)
    trained = split_loss(dataset, "train")
    worst = float(np.nanmax(trained))
    control = Condition(
        worst <= FITTED,
        f"training sequences are learned at every width (loss {worst:.3f} at worst)",
        f"training sequences are not learned in every run (loss {worst:.3f} at worst), so training itself fails",
    )
    beside = (Quantity("training loss, at worst", worst, n=count_runs(dataset), unit="1"),)
    return conclude(_width_criterion(widths, losses, n), (control,), quantities, beside)


def _width_criterion(widths: np.ndarray, losses: np.ndarray, n: int) -> tuple[Condition, ...]:
    means = np.nanmean(losses, 1)
    order = rank_correlation(widths.tolist(), means.tolist())
    ends = (
        f"at n = {n:,} the test loss goes from {means[0]:.2f} at width {widths[0]} to {means[-1]:.2f} at {widths[-1]:,}"
    )
    apart = np.nanmax(losses[0]) < np.nanmin(losses[-1])
    return (
        Condition(means[-1] >= GROWS * means[0], ends, f"{ends}, less than {GROWS:g} times as much"),
        Condition(
            order >= ORDERED,
            f"the loss follows width (rank correlation {order:.2f})",
            f"the loss does not follow width (rank correlation {order:.2f})",
        ),
        Condition(
            bool(apart),
            "every seed of the widest model does worse than every seed of the narrowest",
            "seeds of the widest and of the narrowest model overlap",
        ),
    )


def _loss_quantity(label: str, losses: np.ndarray) -> Quantity:
    """The mean over seeds with the smallest and largest; of one seed what it is."""
    known = losses[np.isfinite(losses)]
    return (
        range_of(label, known, "1") if len(known) > 1 else Quantity(label, float(known.mean()), n=len(known), unit="1")
    )


AS8 = Claim(
    id="AS8",
    title="Inverse scaling: wider models copy worse",
    statement=(
        "The wider a transformer, the more symbols it must be trained on before it repeats one that it never saw; with a "
        "trained multiple of the identity in W_V W_Oᵀ a few symbols suffice at any width."
    ),
    paper=REPORTED["AS8"],
    measure=(
        "Error on unseen symbols of runs that differ in width and in n, with and without identity scaling, each at the "
        "evaluation that is best on validation symbols, which are neither those of training nor those of the test; from "
        f"'bindscope experiment copy'; for each width the smallest trained n whose mean error over seeds is below {SOLVED:g}, "
        "with the range of that n over seeds. Why: after a few steps from the start, how much of what the change of W_V W_O does "
        "to a training symbol's own answer it does to an unseen one's ('bindscope copying': the reach)."
    ),
    criterion=(
        f"Without identity scaling the first n at the widest is at least {GROWS:g} times that at the narrowest width and its "
        f"rank correlation with width at least {ORDERED:g}; with it the first n is at most {SCALED_MOST} at every width "
        f"and at the widest at most {GROWS:g} times that at the narrowest; the reach of early updates at the widest is at most "
        f"1/{GROWS:g} of that at the narrowest width."
    ),
    control_description=(
        f"Training symbols are copied in every run, with an error of at most {TRAINED_ERROR:.0%}; with identity scaling the "
        f"reach is at least {REACHES:g} at every width; another symbol's answer is raised by at most {STRAY:g} of a "
        "training symbol's reading."
    ),
    results=("copy", "copy_directions"),
    judge=judge_copy,
    draw=defer(f"{__package__}.draw", "draw_copy_claim"),
    fixed=Fixed(
        "2026-11-16",
        "curves of 'copy': that errors are read where validation symbols are copied best was decided after seeing them",
    ),
)

AS9 = Claim(
    id="AS9",
    title="Width hurts when the answer is a number, too",
    statement="At one n, telling equal from different unseen symbols gets worse as the model gets wider.",
    paper=REPORTED["AS9"],
    measure=(
        "Loss on unseen symbols at the end of runs on same/different that differ in width alone, from 'bindscope "
        "experiment width'; mean and range over seeds. A loss of 1 is that of knowing nothing."
    ),
    criterion=(
        f"The mean test loss of the widest model is at least {GROWS:g} times that of the narrowest, every seed of the one "
        f"does worse than every seed of the other, and the rank correlation of loss and width is at least {ORDERED:g}."
    ),
    control_description=f"Training sequences are learned at every width: a loss of at most {FITTED:g} in every run.",
    results=("width",),
    judge=judge_width,
    draw=defer(f"{__package__}.draw", "draw_width_claim"),
    fixed=Fixed("2026-11-16", "the paper's numbers, and the first seed of 'width'"),
)

CLAIMS: tuple[Claim, ...] = (AS8, AS9)
