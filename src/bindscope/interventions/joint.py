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
        pairs = chunk.pairs.numpy()
        for index, marks in enumerate(sets.values()):
            own = torch.from_numpy(marks)[chunk.pairs][:, : chunk.base.n_positions]
            found = _patch_set(chunk, own, n_layers)  # [layer, pair]
            answers[index][:, pairs] = np.where(own.any(1).numpy(), found.cpu().numpy(), NONE)
        del chunk  # so that the next one finds the memory free
    return xr.DataArray(
        answers,
        dims=("set", "layer", "pair"),
        coords={"set": list(sets), "layer": np.arange(n_layers + 1)},
        attrs={"n_pairs": len(contrast), "site": "resid_pre"},
    )


def _patch_set(chunk: Chunk, marks: Tensor, n_layers: int) -> Tensor:
    """Top outputs [layer, pair] of one set of marks [pair, position]."""
    base, source, n = chunk.base, chunk.source, chunk.base.n_positions
    columns = torch.arange(n)
    marks = marks & (columns >= chunk.first[:, None])  # before the first difference both runs are the same
    top = base.logits.argmax(-1).repeat(n_layers + 1, 1)
    at_end = marks[:, base.at]
    top[n_layers, at_end] = source.logits[at_end].argmax(-1)
    first = torch.where(marks.any(1), marks.int().argmax(1), n)
    if not base.parts.config.causal:
        first = torch.where(first < n, 0, n)
    changing = (first < n).nonzero()[:, 0]
    for position, group in near_groups(first[changing], base.parts, n_layers):
        for rows in changing[group].split(max(1, tokens_at_once(base.parts.model) // (n_layers * (n - position)))):
            taken, put = as_slice(rows), marks[rows, position:, None].to(base.stream.device)
            starts = {
                layer: torch.where(put, source.stream[layer][rows, position:], base.stream[layer][rows, position:])[
                    None
                ]
                for layer in range(n_layers)
            }
            top[:n_layers, rows] = run_changed(base, position, starts, taken).argmax(-1)
    return top
