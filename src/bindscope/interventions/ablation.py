"""Ablation: take a part's say away and see which answers fall.

What the part gives is replaced by

- ``zero``       nothing;
- ``mean``       its average over a reference batch, position by position where the two batches are laid out alike,
                 else over all positions: what the part always says stays, what it says of this program goes;
- ``resample``   what it gives for another program, drawn at random: the mean's blandness is avoided.

A head's output is its ``result``, identity path included; an MLP's is ``mlp_out``.

    >>> dataset = ablate_heads(model, batch, kind="mean")
    >>> accuracy_by(dataset, "depth").accuracy.sel(layer=2, head=1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.address import (
    Positions,
    change_where,
    check_positions,
    describe_heads,
    mark_site,
    merge_marks,
    resolve_site,
)
from bindscope.interventions.answers import ROWS_AT_ONCE, Edits, label_answers, read_changed
from bindscope.model.run import run
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch

Kind = Literal["zero", "mean", "resample"]
KINDS: tuple[str, ...] = ("zero", "mean", "resample")
Progress = Callable[[int, int], None]


def ablate_heads(
    model: Transformer,
    batch: Batch,
    *,
    kind: Kind = "mean",
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
    heads: Iterable[tuple[int, int]] | None = None,
    on_progress: Progress | None = None,
) -> xr.Dataset:
    """Each head alone: ``correct``, ``answer`` and ``log_probability`` (of the right answer) over (layer, head, example).

    ``heads`` chooses some (layer, head); the others are missing (``answer`` −1). ``reference`` is what means are taken
    over and other programs are drawn from; the batch itself when left out. The unchanged run is ``base_correct`` and so
    on over (example,), and the batch's labels (depth, root_line, …) are coordinates of ``example``.
    """
    config = model.config
    every = [(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
    chosen = every if heads is None else sorted(set(heads))
    sites = [resolve_site(f"L{layer}.H{head}.result", model, batch.tokens.shape[1]) for layer, head in chosen]
    readings = _ablate_each(model, batch, sites, kind, reference, rng, on_progress)
    shape = (config.n_layers, config.n_heads)
    grid = {name: _scatter(values, chosen, shape) for name, values in readings.items()}
    coords = {"layer": np.arange(config.n_layers), "head": np.arange(config.n_heads)}
    return label_answers(model, batch, grid, ("layer", "head"), coords, _describe(kind, reference, sites, model))


def ablate_mlps(
    model: Transformer,
    batch: Batch,
    *,
    kind: Kind = "mean",
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
    on_progress: Progress | None = None,
) -> xr.Dataset:
    """Each MLP alone, over (layer, example); otherwise as ``ablate_heads``."""
    layers = list(model.config.layers_with_mlp)
    if not layers:
        raise BindscopeError("this model has no MLP to ablate.")
    sites = [Site("mlp_out", layer) for layer in layers]
    readings = _ablate_each(model, batch, sites, kind, reference, rng, on_progress)
    return label_answers(
        model, batch, readings, ("layer",), {"layer": layers}, _describe(kind, reference, sites, model)
    )


def ablate_together(
    model: Transformer,
    batch: Batch,
    sites: Iterable[Site | str],
    kind: Kind = "mean",
    *,
    positions: Positions = None,
    reference: Batch | None = None,
    rng: np.random.Generator | None = None,
) -> xr.Dataset:
    """Several sites at once, over (example,); ``positions`` narrow them as in ``patch_sites``.

    >>> ablate_together(model, batch, ["L2.H1", "L3.H0", "L4.mlp_out"], "resample", rng=rng)
    """
    found = tuple(resolve_site(site, model, batch.tokens.shape[1]) for site in sites)
    check_positions(positions, found)
    marks = {site: mark_site(site, positions, *batch.tokens.shape) for site in found}
    readings = replace_together(model, batch, marks, kind, reference, rng)
    return label_answers(model, batch, readings, (), {}, _describe(kind, reference, found, model))


def replace_together(
    model: Transformer,
    batch: Batch,
    marks: dict[Site, np.ndarray],
    kind: Kind,
    reference: Batch | None,
    rng: np.random.Generator | None,
) -> dict[str, np.ndarray]:
    """Readings [example] when each site is replaced in its marked columns [example, position]."""
    merged = merge_marks(marks)
    stand_ins = _stand_ins(model, batch, list(merged), kind, reference, rng)

    def writes(rows: slice) -> Edits:
        return {
            site: change_where(mark[rows], site, lambda old, site=site: stand_ins[site](old, rows))  # type: ignore[misc]
            for site, mark in merged.items()
        }

    return read_changed(model, batch, writes)


def _ablate_each(
    model: Transformer,
    batch: Batch,
    sites: Sequence[Site],
    kind: Kind,
    reference: Batch | None,
    rng: np.random.Generator | None,
    on_progress: Progress | None,
) -> dict[str, np.ndarray]:
    """Readings [site, example], each site alone; the same other programs stand in for all of them."""
    everywhere = np.ones(batch.tokens.shape, bool)
    stand_ins = _stand_ins(model, batch, list(sites), kind, reference, rng)
    readings = []
    for done, site in enumerate(sites, start=1):

        def writes(rows: slice, site: Site = site) -> Edits:
            return {site: change_where(everywhere[rows], site, lambda old: stand_ins[site](old, rows))}

        readings.append(read_changed(model, batch, writes))
        if on_progress is not None:
            on_progress(done, len(sites))
    return {name: np.stack([reading[name] for reading in readings]) for name in readings[0]}


def _stand_ins(
    model: Transformer,
    batch: Batch,
    sites: Sequence[Site],
    kind: Kind,
    reference: Batch | None,
    rng: np.random.Generator | None,
) -> dict[Site, Callable[[Tensor, slice], Tensor]]:
    """For each site a function of its old value and the rows it is asked for, which gives what stands there instead."""
    if kind not in KINDS:
        raise BindscopeError(f"ablation kind '{kind}': choose one of {', '.join(KINDS)}.")
    if kind == "zero":
        return {site: lambda old, rows: torch.zeros_like(old) for site in sites}
    of = batch if reference is None else reference
    aligned = _is_aligned(batch, of)
    if kind == "mean":
        means = _mean_values(model, of, sites, aligned)
        return {site: lambda old, rows, site=site: means[site].expand_as(old) for site in sites}  # type: ignore[misc]
    if rng is None:
        raise BindscopeError("resample ablation draws other programs: give it a generator, rng=….")
    if not aligned:
        raise BindscopeError("resample ablation: the reference programs must be as long as the ablated ones.")
    others, tokens = _draw_others(len(batch), len(of), reference is None, rng), torch.from_numpy(of.tokens)

    def others_value(site: Site) -> Callable[[Tensor, slice], Tensor]:
        return lambda old, rows: run(model, tokens[others[rows]], [site], layout=of.layout)[site]

    return {site: others_value(site) for site in sites}


def _is_aligned(batch: Batch, other: Batch) -> bool:
    return np.array_equal(batch.layout.position_ids, other.layout.position_ids)


def _draw_others(n_rows: int, n_others: int, same: bool, rng: np.random.Generator) -> np.ndarray:
    """For each row another one's index; where both are one batch, never its own."""
    if not same:
        return rng.integers(0, n_others, n_rows)
    if n_rows < 2:
        raise BindscopeError("resample ablation of a single program needs a reference batch to draw from.")
    return (np.arange(n_rows) + rng.integers(1, n_rows, n_rows)) % n_rows


@torch.no_grad()
def _mean_values(model: Transformer, batch: Batch, sites: Sequence[Site], aligned: bool) -> dict[Site, Tensor]:
    """The average of each site over the rows, [1, position, …] where rows are aligned, else over positions too."""
    sums: dict[Site, Tensor] = {}
    for start in range(0, len(batch), ROWS_AT_ONCE):
        tokens = torch.from_numpy(batch.tokens[start : start + ROWS_AT_ONCE])
        trace = run(model, tokens, sites, layout=batch.layout)
        for site in sites:
            sums[site] = sums.get(site, 0) + trace[site].double().sum(0, keepdim=True)
    means = {site: total / len(batch) for site, total in sums.items()}
    if aligned:
        return {site: mean.to(model.W_E.dtype) for site, mean in means.items()}
    for site in sites:
        if "key" in site.kind.axes:
            raise BindscopeError(f"site '{site}': attention has no mean over programs of different lengths.")
    return {site: mean.mean(1, keepdim=True).to(model.W_E.dtype) for site, mean in means.items()}


def _scatter(values: np.ndarray, chosen: Sequence[tuple[int, int]], shape: tuple[int, int]) -> np.ndarray:
    """Readings [chosen, example] on the whole grid, missing elsewhere."""
    missing = -1 if np.issubdtype(values.dtype, np.integer) else np.nan
    grid = np.full((*shape, values.shape[1]), missing, values.dtype)
    for (layer, head), row in zip(chosen, values):
        grid[layer, head] = row
    return grid


def _describe(kind: Kind, reference: Batch | None, sites: Sequence[Site], model: Transformer) -> dict[str, object]:
    of = "" if kind == "zero" else ("the ablated programs" if reference is None else f"{len(reference)} other programs")
    return {"kind": kind, "reference": of, "heads": describe_heads(sites, model)}
