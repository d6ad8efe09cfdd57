"""What each experiment of study 3 found, in sentences made from the numbers of its dataset."""

from __future__ import annotations

import xarray as xr

from bindscope.studies.framework.experiments import count_runs
from bindscope.studies.symbols.efficiency.curves import (
    FEWER,
    MODEL_NAMES,
    PAPER,
    Curve,
    curve_of,
    half_loss_n,
    models_of,
)
from bindscope.studies.symbols.efficiency.evidence import show_number


def conclude_curves(dataset: xr.Dataset) -> str:
    """How many runs there are, then for each model its loss (or error) at both ends of n and the n of half loss."""
    n_runs, n_seeds = count_runs(dataset), dataset.sizes["seed"]
    parts = [f"{n_runs} runs of {dataset.attrs['preset']}, up to {n_seeds} seed{'s' * (n_seeds > 1)} at each n."]
    for heads in (FEWER, PAPER):
        models = models_of(dataset, heads)
        if heads == PAPER:
            models = [model for model in models if (dataset.heads.values[dataset.model.values == model] == PAPER).any()]
        if models and heads == PAPER:
            parts.append(f"With {PAPER} heads:")
        parts += [_describe(dataset, curve_of(dataset, model, heads), heads) for model in models]
    return " ".join(parts)


def _describe(dataset: xr.Dataset, curve: Curve, heads: int) -> str:
    first, last = curve.points[0], curve.points[-1]
    name = MODEL_NAMES[curve.model]
    what = f"{name[0].upper()}{name[1:]}: test {curve.measure} {show_number(first.value)} at n = {first.n:,}"
    if first.n == last.n:
        return f"{what}."
    half = half_loss_n(dataset, curve.model, heads)
    return f"{what} and {show_number(last.value)} at n = {last.n:,}, below a half from n {_from(str(half))}."


def _from(crossing: str) -> str:
    return crossing if crossing[0] in "≤>" else f"= {crossing}"
