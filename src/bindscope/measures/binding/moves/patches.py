"""Every head at every position of the chain, patched and ablated: where a value or a pointer arrives, and who brought it.

A *what* is one thing that base and source differ in: ``value`` (the constant at the root), or the name at one reference
(``rhs 2``, …, ``query``; pointer pairs, ``tasks/binding/pointers.py``). Its target is the answer which says that just this was
moved: the source's for a value, the base's value of the other name for a pointer.

    >>> moved = [value_contrast(pairs), *(pointer_contrast(each) for each in pointers)]
    >>> dataset = measure_moves(model, moved)
    >>> dataset.head.sel(what="value", layer=2, index=1, position="rhs 2")

An effect is how far the target's margin has come: 0 where it was, 1 where the target leads by as much as the base's answer did.
Everything is exact; a head at a position equals one run of the model with that one write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.interventions.ablation import ablate_heads
from bindscope.interventions.columns import residual_columns
from bindscope.interventions.contrast import Contrast, contrast_pairs
from bindscope.interventions.replacement import patch_heads
from bindscope.measures.binding.algorithm.patches import path_of
from bindscope.model.run import run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import CounterfactualPairs, PointerPairs, named_positions
from bindscope.tasks.task import Batch

VALUE = "value"
EVERYWHERE = "everywhere"
MEASURES = {"held": "resid_pre", "together": "attn_out"}  # what all layers of one site are asked for
PATTERNS_AT_ONCE = 16  # pairs whose attention is held at a time


@dataclass(frozen=True, eq=False)
class Moved:
    """Pairs that differ in one thing. The contrast's source answers are the target."""

    what: str
    contrast: Contrast
    columns: Mapping[str, np.ndarray]  # position of the chain → its column [pair]
    base: Batch

    @property
    def path(self) -> list[str]:
        return list(self.columns)

    def take(self, pairs: np.ndarray) -> Moved:
        """Only these pairs."""
        columns = {name: column[pairs] for name, column in self.columns.items()}
        return Moved(self.what, self.contrast.take(torch.from_numpy(pairs)), columns, self.base.take(pairs))


def value_contrast(pairs: CounterfactualPairs, direction: str = "noising") -> Moved:
    """Pairs of one depth that differ in the constant at the root."""
    contrast = contrast_pairs(pairs, direction)  # type: ignore[arg-type]
    return Moved(VALUE, contrast, _columns(pairs), pairs.base if direction == "noising" else pairs.counterfactual)


def pointer_contrast(drawn: PointerPairs) -> Moved:
    """Pairs that differ in the name at one reference; the target is what the base program holds for the other name."""
    contrast = replace(contrast_pairs(drawn.pairs), source_answers=torch.from_numpy(drawn.pointed_answers))
    return Moved(drawn.reference, contrast, _columns(drawn.pairs), drawn.pairs.base)


def _columns(pairs: CounterfactualPairs) -> dict[str, np.ndarray]:
    named = named_positions(pairs)
    depth = sum(name.startswith("rhs") and bool((column >= 0).all()) for name, column in named.items())
    return {name: named[name] for name in path_of(depth)}


def stream_moves(model: Transformer, moved: Sequence[Moved], reference: Batch | None = None) -> Iterator[xr.Dataset]:
    """The dataset of ``measure_moves`` as it grows, one ``what`` after another and ablations last; what is to come is missing."""
    dataset = _empty(model, moved)
    first = moved[0]
    dataset["attended"][:] = _attended(model, first)
    for row, each in enumerate(moved):
        for name, values in _patched(model, each).items():
            at = dataset[name].dims.index("position")
            known = [dataset.get_index("position").get_loc(position) for position in each.path]
            dataset[name].values[row][(slice(None),) * (at - 1) + (known,)] = values[..., : len(moved[0].contrast)]
        yield dataset
    dataset["lost"][:] = _ablated(model, first, reference)
    yield dataset


def measure_moves(model: Transformer, moved: Sequence[Moved], reference: Batch | None = None) -> xr.Dataset:
    """Over (what, layer, position, pair): ``held``, the effect of the residual stream that enters the layer there, and
    ``together``, of all its heads there; ``head`` (…, layer, index, position, pair), of one of them. Of the first ``what``'s base
    runs: ``attended`` (layer, index, position, from, pair), the weight from one position of the chain on another, and ``lost``
    (layer, index, ablated_at, pair), the part of the answer's margin that is gone with the head's mean there instead.

    Means are taken over ``reference``, or over the base programs themselves.
    """
    *_, dataset = stream_moves(model, moved, reference)
    return dataset


def _empty(model: Transformer, moved: Sequence[Moved]) -> xr.Dataset:
    config, path, n = model.config, moved[0].path, min(len(each.contrast) for each in moved)
    axes: dict[str, list[Any]] = {
        "what": [each.what for each in moved],
        "layer": list(range(config.n_layers)),
        "index": list(range(config.n_heads)),
        "position": path,
        "from": path,
        "ablated_at": [EVERYWHERE, *path],
    }
    dims = {
        "held": ("what", "layer", "position"),
        "together": ("what", "layer", "position"),
        "head": ("what", "layer", "index", "position"),
        "attended": ("layer", "index", "position", "from"),
        "lost": ("layer", "index", "ablated_at"),
    }
    variables = {
        name: ((*along, "pair"), np.full([*(len(axes[dim]) for dim in along), n], np.nan, np.float32))
        for name, along in dims.items()
    }
    return xr.Dataset(variables, axes)


def _patched(model: Transformer, moved: Moved) -> dict[str, np.ndarray]:
    """Effects of one ``what``: held and together [layer, position, pair], head [layer, index, position, pair]."""
    n_layers, n_heads, n = model.config.n_layers, model.config.n_heads, len(moved.contrast)
    marks = {name: _marks(moved, name) for name in moved.path}
    found = {name: np.zeros((n_layers, len(marks), n), np.float32) for name in MEASURES}
    wanted = torch.stack(list(marks.values())).any(0)
    columns = np.stack(list(moved.columns.values()))  # [position, pair]
    for name, site in MEASURES.items():
        for part in residual_columns(model, moved.contrast, site, wanted):
            effect = _effect(part.logits, part.base_logits, moved.contrast, part.pairs)  # [layer, column]
            pairs = part.pairs.numpy()
            row = (columns[:, pairs] == part.positions.numpy()).argmax(0)
            found[name][:, row, pairs] = effect
    heads = np.zeros((n_layers, n_heads, len(marks), n), np.float32)
    for row, marked in enumerate(marks.values()):
        for chunk in patch_heads(model, moved.contrast, marked):
            heads[:, :, row, chunk.pairs.numpy()] = _effect(
                chunk.logits, chunk.base_logits, moved.contrast, chunk.pairs
            )
    return {**found, "head": heads}


def _effect(logits: Tensor, base_logits: Tensor, contrast: Contrast, pairs: Tensor) -> np.ndarray:
    """How far the target's margin over the best other output [..., pair] went from its base value −m: 0 at −m, 1 at +m.

    Over the best other, so that bringing a third answer is no success. A pair whose base run has the target on top has none.
    """
    logits, base_logits, targets = to_host(logits), to_host(base_logits), contrast.source_answers[pairs]
    before, after = _margin(base_logits, targets), _margin(logits, targets)
    return torch.where(before < 0, (after - before) / (-2 * before), torch.nan).float().numpy()


def _margin(logits: Tensor, targets: Tensor) -> Tensor:
    """Logits [..., pair, output] of the targets [pair] over the best other output."""
    rows, others = torch.arange(len(targets)), logits.clone()
    others[..., rows, targets] = -torch.inf
    return logits[..., rows, targets] - others.amax(-1)


def _marks(moved: Moved, name: str) -> Tensor:
    marks = torch.zeros_like(moved.contrast.base, dtype=torch.bool)
    marks[torch.arange(len(marks)), torch.from_numpy(moved.columns[name])] = True
    return marks


@torch.no_grad()
def _attended(model: Transformer, moved: Moved) -> np.ndarray:
    """Weights [layer, index, position, from, pair] between positions of the chain, in the base runs."""
    sites = [Site("pattern", layer) for layer in range(model.config.n_layers)]
    columns = torch.from_numpy(np.stack(list(moved.columns.values()), axis=1))  # [pair, position]
    parts = []
    for rows in torch.arange(len(columns)).split(PATTERNS_AT_ONCE):
        trace = run(model, moved.contrast.base[rows], sites)
        at, each = columns[rows], torch.arange(len(rows))[:, None, None]
        weights = [
            to_host(trace[site])[each, :, at[:, :, None], at[:, None, :]] for site in sites
        ]  # [pair, pos, from, head]
        parts.append(torch.stack(weights).permute(0, 4, 2, 3, 1))
    return torch.cat(parts, dim=-1).float().numpy()


def _ablated(model: Transformer, moved: Moved, reference: Batch | None) -> np.ndarray:
    """The part of the margin [layer, index, ablated_at, pair] that is lost with a head's mean instead of its output."""
    lost = []
    for name in (EVERYWHERE, *moved.path):
        marks = None if name == EVERYWHERE else _marks(moved, name).numpy()
        found = ablate_heads(model, moved.base, kind="mean", reference=reference, at_positions=marks)
        whole = found.base_margin.values
        with np.errstate(invalid="ignore", divide="ignore"):
            lost.append(np.where(whole > 0, (whole - found.margin.values) / whole, np.nan))
    return np.stack(lost, axis=2).astype(np.float32)
