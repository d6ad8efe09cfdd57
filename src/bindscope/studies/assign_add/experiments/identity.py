"""Identity scaling on sums: which parts of attention the trained models use, and what the experiment says.

A scaled head has four parts: trained and identity scores, trained and identity outputs. Each is taken out of one layer of
the last checkpoint, and all nine pools are asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.studies.assign_add.experiments.conclude import conclude_options
from bindscope.studies.framework.results import with_progress

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.runs.directory import Run
    from bindscope.studies.framework.experiments import Cell

PARTS = ("identity scores", "identity outputs", "trained scores", "trained outputs")
PATH_OF = {"identity scores": "identity_qk", "identity outputs": "identity_vo"}
N_SUMS = 500  # of each pool
SEED = 0


def measure_identity_sums(
    runs: Mapping[Cell, Run], on_progress: Callable[[int, int], None] | None = None
) -> xr.Dataset:
    """What the last checkpoint of each run with identity-scaling terms makes of them, over (variant, seed).

    ``whole_accuracy`` is the mean of nine pools, ``accuracy_without`` (…, layer, part) the same with a part taken out of
    one layer, NaN where the model has no such part; ``scaled_a`` and ``scaled_b`` (…, layer, head) as in
    ``measures.identity_paths``.
    """
    results = []
    for cell, run in with_progress(list(runs.items()), on_progress):
        if cell.config.model.identity_qk or cell.config.model.identity_vo:
            pools = run.config.task.sample_evaluation(np.random.default_rng(SEED), N_SUMS)
            results.append(
                _measure(run.checkpoint("last"), pools).expand_dims(variant=[cell.variant], seed=[cell.seed])
            )
    return xr.merge(results, join="outer", compat="no_conflicts") if results else xr.Dataset()


def conclude_identity_sums(dataset: xr.Dataset) -> str:
    """When each variant learned, then what the runs with both paths owe to each part."""
    text = conclude_options(dataset)
    if "accuracy_without" not in dataset or "both" not in dataset.variant.values:
        return text
    both = dataset.sel(variant="both").dropna("seed", subset=["whole_accuracy"])
    parts = [
        f"{part} {', '.join(_describe(both.accuracy_without.sel(part=part, layer=layer)) for layer in both.layer.values)}"
        for part in map(str, both.part.values)
    ]
    positive = {name: int((both[name] > 0).sum()) for name in ("scaled_a", "scaled_b")}
    return (
        f"{text} In the {both.sizes['seed']} run{'s' if both.sizes['seed'] > 1 else ''} with both paths {_describe(both.whole_accuracy)} of all sums come out "
        f"right; without a part in layer 0 and in layer 1: {'; '.join(parts)}. "
        f"{positive['scaled_a']} of {both.scaled_a.size} heads have a positive a, {positive['scaled_b']} a positive b."
    )


def _measure(model: Transformer, pools: Mapping[str, Any]) -> xr.Dataset:
    from bindscope.measures.identity_paths import scales_of, without_part

    config = model.config
    without = np.full((config.n_layers, len(PARTS)), np.nan)
    for place, part in enumerate(PARTS):
        if part in PATH_OF and not getattr(config, PATH_OF[part]):
            continue
        for layer in range(config.n_layers):
            with without_part(model, part, [(layer, head) for head in range(config.n_heads)]):
                without[layer, place] = _mean_accuracy(model, pools)
    return xr.Dataset(
        {
            "whole_accuracy": ((), _mean_accuracy(model, pools)),
            "accuracy_without": (("layer", "part"), without),
        },
        {"layer": range(config.n_layers), "part": list(PARTS)},
    ).merge(scales_of(model))


def _mean_accuracy(model: Transformer, pools: Mapping[str, Any]) -> float:
    from bindscope.measures.evaluation import read_answers

    shares = [(read_answers(model, batch).argmax(1) == batch.targets[:, 0]).mean() for batch in pools.values()]
    return float(np.mean(shares))


def _describe(shares: xr.DataArray) -> str:
    """``12.0 %`` or ``12.0–31.5 %``: the range over seeds."""
    low, high = (f"{100 * float(value):.1f}" for value in (shares.min(), shares.max()))
    return f"{low} %" if low == high else f"{low}–{high} %"
