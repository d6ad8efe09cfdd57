"""Which heads make which hop: what each moves at one position of the chain, and which answers fall without it.

    >>> moved = measure_hop_heads(model, pairs_of_one_depth, rng)
    >>> moved.effect.sel(position="rhs 2"), moved.hop_layer.sel(position="rhs 2")

A hop is named by the position where it arrives. Its heads are those that move at least ``MATTERS`` of the way from the base's
to the counterfactual's answer, by themselves and there alone; its layer is their mean, weighted by what they move.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from bindscope.interventions.ablation import ablate_heads_at
from bindscope.interventions.answers import accuracy_by
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.grids import head_grids
from bindscope.measures.binding.mechanism import ENDS, mark_columns
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import CounterfactualPairs, named_positions

MATTERS = 0.1  # of the way from the base's to the counterfactual's answer, by one head at one position
N_RESAMPLES = 400
TAILS = (0.025, 0.975)
ANYWHERE = "anywhere"


def measure_hop_heads(
    model: Transformer, pairs: CounterfactualPairs, hops: Sequence[str], rng: np.random.Generator
) -> xr.Dataset:
    """Of pairs of one depth: ``effect`` over (position, layer, head), ``hop_layer`` (position) and how much later each hop
    is than the one before, ``later`` (position), with bootstrap intervals over pairs."""
    named, contrast = named_positions(pairs), contrast_pairs(pairs)
    found = head_grids(model, contrast, {hop: mark_columns(pairs, named[hop]) for hop in hops})
    grids = [grid.logit_difference for grid in found.values()]
    effects = np.nan_to_num(np.stack([grid.values for grid in grids]))  # [position, layer, head, pair]
    n = effects.shape[-1]
    draws = rng.multinomial(n, np.full(n, 1 / n), N_RESAMPLES) / n  # [resample, pair]
    resampled = np.moveaxis(effects @ draws.T, -1, 0)  # [resample, position, layer, head]
    mean = effects.mean(-1)
    layers, many = mean_layers(mean), mean_layers(resampled)  # [position], [resample, position]
    numbers = {
        "effect": (("position", "layer", "head"), mean, resampled),
        "hop_layer": (("position",), layers, many),
        "later": (("position",), _later(layers), _later(many)),
    }
    dataset = xr.Dataset(
        coords={"position": list(hops), "layer": grids[0].layer.values, "head": grids[0]["head"].values}
    )
    for name, (dims, value, spread) in numbers.items():
        for end, found in zip(ENDS, (value, *_quantiles(spread))):
            dataset[f"{name}{end}"] = (dims, found)
    return dataset.assign_attrs(n_pairs=n)


def mean_layers(effects: np.ndarray) -> np.ndarray:
    """The mean layer [..., position] of the heads that matter in effects [..., position, layer, head], weighted; NaN for none."""
    weights = np.where(effects >= MATTERS, effects, 0.0).sum(-1)  # [..., position, layer]
    total = weights.sum(-1)
    layers = (weights * np.arange(weights.shape[-1])).sum(-1) / np.where(total > 0, total, 1)
    return np.where(total > 0, layers, np.nan)


def ablate_hops(
    model: Transformer, pairs: CounterfactualPairs, hops: Sequence[str], rng: np.random.Generator
) -> xr.Dataset:
    """Accuracy by depth with each head mean-ablated, everywhere and at each position: over (position, layer, head, depth).

    ``drop`` (depth) is how much accuracy falls when one head is ablated everywhere, mean over all heads; ``more`` how much
    further it falls at the deepest chains than at depth 1. Both with bootstrap intervals over programs.
    """
    named, batch = named_positions(pairs), pairs.base
    marks = {hop: mark_columns(pairs, named[hop]) for hop in hops}
    ablated = ablate_heads_at(model, batch, {ANYWHERE: None, **marks})
    everywhere = ablated[ANYWHERE]
    lost = (everywhere.base_correct - everywhere.correct).mean(("layer", "head"))  # [example]
    drops = _drops(lost.values, everywhere.depth.values, rng)
    parts = [accuracy_by(everywhere, "depth")]
    parts += [accuracy_by(ablated[hop].isel(example=np.flatnonzero(at.any(1))), "depth") for hop, at in marks.items()]
    dataset = xr.concat(parts, xr.IndexVariable("position", [ANYWHERE, *hops]), join="outer", combine_attrs="drop")
    kept = ("accuracy", "accuracy_low", "accuracy_high", "base_accuracy", "n")
    return dataset[list(kept)].merge(drops).assign_attrs(n_programs=len(batch), kind="mean")


def accuracy_drops(dataset: xr.Dataset) -> xr.DataArray:
    """By how much accuracy falls with a head ablated: over (…, layer, head, depth); NaN where no chain has the position."""
    return (dataset.base_accuracy - dataset.accuracy).transpose(..., "layer", "head", "depth")


def find_costliest(drops: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Over (…, depth) the largest drop by one head, and that head's name, the first of equals; '' where nothing falls."""
    by_head = drops.stack(of=("layer", "head"))
    most, best = by_head.max("of"), by_head.fillna(-np.inf).argmax("of")
    names = np.array([f"L{layer}.H{head}" for layer, head in by_head.of.values])
    return most, most.copy(data=np.where(most > 0, names[best.values], ""))


def _drops(lost: np.ndarray, depths: np.ndarray, rng: np.random.Generator) -> xr.Dataset:
    """Means of what is lost [example] by depth, and of the deepest less depth 1's."""
    known = np.unique(depths)
    groups = [lost[depths == depth] for depth in known]
    means = np.array([group.mean() for group in groups])
    many = np.stack(
        [rng.choice(group, (N_RESAMPLES, len(group))).mean(1) for group in groups], axis=1
    )  # [resample, depth]
    dataset = xr.Dataset(coords={"depth": known})
    for end, by_depth, more in zip(
        ENDS, (means, *_quantiles(many)), (means[-1] - means[0], *_quantiles(many[:, -1] - many[:, 0]))
    ):
        dataset[f"drop{end}"], dataset[f"more{end}"] = ("depth", by_depth), ((), float(more))
    return dataset


def _later(layers: np.ndarray) -> np.ndarray:
    """How much later each hop [..., position] is than the last one before it that has a layer; NaN where there is none."""
    later, before = np.full_like(layers, np.nan), np.full(layers.shape[:-1], np.nan)
    for at in range(layers.shape[-1]):
        later[..., at] = layers[..., at] - before
        before = np.where(np.isfinite(layers[..., at]), layers[..., at], before)
    return later


def _quantiles(resampled: np.ndarray) -> np.ndarray:
    """Both ends of the interval over the first axis; NaN where nothing is known."""
    known = np.isfinite(resampled).any(0)
    filled = np.where(known, resampled, 0.0)
    ends: np.ndarray = np.nanquantile(filled, TAILS, axis=0)
    return np.where(known, ends, np.nan)
