"""What claims about curves have in common: which runs they need, quantities, and the control on training sequences."""

from __future__ import annotations

from collections.abc import Sequence

import xarray as xr

from bindscope.measures.stats.crossings import Crossing
from bindscope.studies.framework.claims import Condition, Finding, Quantity, Unit
from bindscope.studies.framework.experiments import defer
from bindscope.studies.symbols.efficiency.curves import (
    FEWER,
    MODEL_NAMES,
    Curve,
    Point,
    curve_of,
    is_baseline,
    models_of,
)

draw_claim = defer(f"{__package__}.draw", "draw_claim")  # of a title and models, for ``partial``
FITTED = 0.1  # loss, or error, on the training sequences of a model that has learned them


def train_more(dataset: xr.Dataset, full: bool = False) -> str:
    """The command that trains what a dataset lacks."""
    name = str(dataset.attrs.get("title", "")).removeprefix("experiment ")
    return f"'bindscope experiment {name}{' --full' if full else ''}'"


def missing_models(dataset: xr.Dataset, models: Sequence[str], heads: int = FEWER) -> str:
    """Why a claim about these models cannot be judged; empty where all have runs."""
    known = models_of(dataset, heads)
    missing = [MODEL_NAMES[model] for model in models if model not in known]
    if not missing:
        return ""
    return f"there is no run of {', '.join(missing)}, which {train_more(dataset)} trains"


def show_number(value: float) -> str:
    """A loss or an error in a sentence."""
    return f"{value:.2g}" if value < 0.1 else f"{value:.2f}"


def point_quantity(curve: Curve, point: Point) -> Quantity:
    """A point of a curve with its interval and the number of its seeds."""
    label = f"{MODEL_NAMES[curve.model]}, n = {point.n:,}"
    words = label if curve.split == "test" else f"{label}, training sequences"
    unit: Unit = "1" if curve.measure == "loss" else "fraction"
    return Quantity(words, point.value, point.low, point.high, len(point.seeds), unit)


def crossing_quantity(label: str, crossing: Crossing, joint: str = ", ") -> Quantity:
    """An n with its interval; where only a bound is known, the label says which, behind ``joint``."""
    if crossing.censored == "above":
        return Quantity(f"{label}{joint}more than", crossing.largest, unit="step")
    if crossing.censored == "below":
        return Quantity(f"{label}{joint}at most", crossing.smallest, unit="step")
    return Quantity(label, crossing.n, *crossing.ends, unit="step")


def half_loss_quantity(model: str, crossing: Crossing) -> Quantity:
    """The n of half loss of a model."""
    return crossing_quantity(f"n of half loss, {MODEL_NAMES[model]}", crossing)


def fitted_control(
    dataset: xr.Dataset, models: Sequence[str], heads: int = FEWER
) -> tuple[tuple[Condition, ...], tuple[Quantity, ...]]:
    """Every model has learned its training sequences at every n: where it fails on new symbols, training did not fail."""
    curves = [curve_of(dataset, model, heads, split="train") for model in models]
    points = [(curve, point) for curve in curves for point in curve.points]
    curve, worst = max(points, key=lambda each: each[1].value)
    where = f"{MODEL_NAMES[curve.model]}, n = {worst.n:,}"
    words = f"the {curve.measure} on training sequences is {show_number(worst.value)} at worst ({where})"
    condition = Condition(worst.value <= FITTED, words, f"{words}: training itself fails")
    return (condition,), (point_quantity(curve, worst),)


def tell_runs(finding: Finding, dataset: xr.Dataset, models: Sequence[str], heads: int = FEWER) -> Finding:
    """The finding with a last sentence: how many runs of how many heads, and what they lack of the paper's."""
    curves = [curve_of(dataset, model, heads) for model in models]
    n_runs = sum(len(point.seeds) for curve in curves for point in curve.points)
    largest = max(int(curve.n.max()) for curve in curves)
    with_heads = "" if all(map(is_baseline, models)) else f" with {heads} heads"
    return finding.adding(f"{n_runs} runs{with_heads}, n up to {largest:,}.")
