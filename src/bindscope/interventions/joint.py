"""Joint patching: the residual stream of several positions taken from the source at once, at every layer in turn.

    >>> answers = joint_answers(model, contrast, {"query + colon": marks, "rhs 2": other_marks})
    >>> (answers.sel(set="rhs 2", layer=3) == contrast.source_answers).mean()

Every cell equals one ``patch_sites`` at ``L….resid_pre`` and those positions; what cannot change is not computed again.
The answers are returned rather than a success, so that one patch can be asked several questions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.chunks import Chunk, as_slice, near_groups, run_chunks, tokens_at_once
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.engine import run_changed
from bindscope.model.transformer import Transformer

NONE = -1  # the answer of a pair that has none of a set's positions


@torch.no_grad()
def joint_answers(model: Transformer, contrast: Contrast, sets: Mapping[str, np.ndarray]) -> xr.DataArray:
    """The top output over (set, layer, pair) with all positions of a set, marks [pair, position], taken from the source.

    Layers count what enters them; the last, ``n_layers``, is what leaves the model. −1 where a pair has no such position.
    """
    if not sets:
        raise BindscopeError("joint patching: no set of positions was named; name at least one.")
    for name, marks in sets.items():
        if marks.dtype != bool or marks.shape != tuple(contrast.base.shape):
            raise BindscopeError(
                f"joint patching: the marks of '{name}' must be true or false for each token of each pair."
            )
    n_layers = model.config.n_layers
    answers = np.full((len(sets), n_layers + 1, len(contrast)), NONE)
    for chunk in run_chunks(model, contrast):
        pairs, differs = chunk.pairs.numpy(), _find_changes(chunk)
        for index, marks in enumerate(sets.values()):
            own = torch.from_numpy(marks)[chunk.pairs][:, : chunk.base.n_positions]
            found = _patch_set(chunk, own, differs, n_layers)  # [layer, pair]
            answers[index][:, pairs] = np.where(own.any(1).numpy(), found.cpu().numpy(), NONE)
        del chunk  # so that the next one finds the memory free
    return xr.DataArray(
        answers,
        dims=("set", "layer", "pair"),
        coords={"set": list(sets), "layer": np.arange(n_layers + 1)},
        attrs={"n_pairs": len(contrast), "site": "resid_pre"},
    )


def _find_changes(chunk: Chunk) -> Tensor:
    """Where the two runs differ, [layer, pair, position]: anywhere else nothing is changed by taking the source's stream."""
    differs = (chunk.source.stream != chunk.base.stream).any(-1).cpu()
    return differs & (torch.arange(differs.shape[2]) >= chunk.first[:, None])


def _patch_set(chunk: Chunk, marks: Tensor, differs: Tensor, n_layers: int) -> Tensor:
    """Top outputs [layer, pair] of one set of marks [pair, position]."""
    base, source, n = chunk.base, chunk.source, chunk.base.n_positions
    top = base.logits.argmax(-1).repeat(n_layers + 1, 1)
    at_end = marks[:, base.at] & (torch.arange(n)[base.at] >= chunk.first)
    top[n_layers, at_end] = source.logits[at_end].argmax(-1)
    changing = marks & differs  # [layer, pair, position]
    reached = changing.any(0)
    first = torch.where(reached.any(1), reached.int().argmax(1), n)
    if not base.parts.config.causal:
        first = torch.where(first < n, 0, n)
    patched = (first < n).nonzero()[:, 0]
    for position, group in near_groups(first[patched], base.parts, n_layers):
        for rows in patched[group].split(max(1, tokens_at_once(base.parts.model) // (n_layers * (n - position)))):
            layers = changing[:, rows].any(-1).any(-1).nonzero()[:, 0].tolist()
            stop = int(reached[rows].any(0).nonzero()[-1]) + 1  # behind that all enters as in the base run
            taken, columns = as_slice(rows), slice(position, stop)
            put = marks[rows, columns, None].to(base.stream.device)
            starts = {
                layer: torch.where(put, source.stream[layer][rows, columns], base.stream[layer][rows, columns])[None]
                for layer in layers
            }
            found = run_changed(base, position, starts, taken).argmax(-1)  # [layer that changes, pair]
            top[torch.tensor(layers)[:, None], rows] = found
    return top
