"""Reading the residual stream at columns that differ from program to program, and running on with them changed.

Layer k means the residual stream that enters layer k; one more than the last layer means the residual stream that leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.continuation import KeptRuns, keep_runs, kept_bytes
from bindscope.model.run import run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import CounterfactualPairs

Change = Callable[[Tensor, Tensor], Tensor]  # (base, source) → what takes the base's place, all [..., d_model]
KEPT_BYTES = 1 << 30  # of base runs that many changes go on from
TOKENS_AT_ONCE = 1 << 14  # how many tokens go through the model together; bounds memory, never changes a number


def stream_site(model: Transformer, layer: int) -> Site:
    """The site of the residual stream entering ``layer``, or leaving the last one."""
    n_layers = model.config.n_layers
    if not 0 <= layer <= n_layers:
        raise BindscopeError(
            f"layer {layer}: the model has layers 0 to {n_layers - 1}; {n_layers} is the residual stream that leaves the last."
        )
    return Site("resid_pre", layer) if layer < n_layers else Site("resid_post", n_layers - 1)


def read_stream(model: Transformer, tokens: np.ndarray, layer: int, columns: np.ndarray) -> Tensor:
    """The residual stream [row, column, d_model] at the columns [row, column] of each row; 0 where a column is −1."""
    return read_layers(model, tokens, [layer], columns)[layer]


@torch.no_grad()
def read_layers(
    model: Transformer, tokens: np.ndarray, layers: Iterable[int], columns: np.ndarray
) -> dict[int, Tensor]:
    """The residual stream as ``read_stream`` gives it for several layers, from one run."""
    sites = {layer: stream_site(model, layer) for layer in layers}
    parts: dict[int, list[Tensor]] = {layer: [] for layer in sites}
    for rows in split_rows(*tokens.shape):
        trace = run(model, torch.from_numpy(tokens[rows]), read=sites.values())
        for layer, site in sites.items():
            parts[layer].append(pick_columns(to_host(trace[site]), torch.from_numpy(columns[rows])))
    return {layer: torch.cat(values) for layer, values in parts.items()}


def keep_base(model: Transformer, pairs: CounterfactualPairs, layer: int) -> KeptRuns | None:
    """The runs of the base programs, from which changes in ``layer`` and above go on; None where memory is too small.

    >>> kept = keep_base(model, pairs, layer=3)
    >>> [run_changed(model, pairs, 3, columns, source, drawn.swap, kept) for drawn in subspaces]
    """
    stream_site(model, layer)
    if len(pairs) * kept_bytes(model, pairs.base_tokens.shape[1], layer) > KEPT_BYTES:
        return None
    return keep_runs(model, torch.from_numpy(pairs.base_tokens), pairs.colon_position, layer)


@torch.no_grad()
def swap_stream(
    model: Transformer, pairs: CounterfactualPairs, layer: int, columns: np.ndarray, change: Change
) -> Tensor:
    """Logits [pair, output] at the colon of the base programs, their stream changed at ``columns`` [pair, column].

    >>> swap_stream(model, pairs, 3, find_columns(pairs, "query"), subspace.swap).argmax(-1)
    """
    source = read_stream(model, pairs.counterfactual_tokens, layer, columns)
    return run_changed(model, pairs, layer, columns, source, change)


@torch.no_grad()
def run_changed(
    model: Transformer,
    pairs: CounterfactualPairs,
    layer: int,
    columns: np.ndarray,
    source: Tensor,
    change: Change,
    kept: KeptRuns | None = None,
) -> Tensor:
    """As ``swap_stream``, with the source's stream [pair, column, d_model] already read.

    Several changes of the same pairs go on from base runs that are ``kept``; one alone is a whole run.
    """
    parts = []
    for rows in split_rows(*pairs.base_tokens.shape):
        marked = torch.from_numpy(columns[rows])
        if kept is None:
            tokens, at = torch.from_numpy(pairs.base_tokens[rows]), torch.tensor([pairs.colon_position])
            edit = edit_columns(marked, source[rows], change)
            logits = run(model, tokens, write={stream_site(model, layer): edit}, at=at).logits[:, 0]
        else:
            logits = _change_kept(kept, layer, torch.arange(len(pairs))[rows], marked, source[rows], change)
        parts.append(to_host(logits))
    return torch.cat(parts)


def _change_kept(kept: KeptRuns, layer: int, rows: Tensor, columns: Tensor, source: Tensor, change: Change) -> Tensor:
    """Logits [row, output] of kept runs with ``change`` applied; where it changes nothing, nothing is run."""
    base = to_host(kept.read(layer, rows, columns))
    changed = change(base, source)
    return kept.run_changed(layer, rows, columns.masked_fill((changed == base).all(-1), -1), changed)


def edit_columns(columns: Tensor, source: Tensor, change: Change) -> Callable[[Tensor], Tensor]:
    """The write that applies ``change`` at ``columns`` [row, column] of a stream [row, position, d_model]."""
    row, index = torch.nonzero(columns >= 0, as_tuple=True)
    column = columns[row, index]

    def edit(value: Tensor) -> Tensor:
        changed = change(to_host(value[row, column]), source[row, index])
        return value.index_put((row, column), changed.to(value.device, value.dtype))

    return edit


def pick_columns(value: Tensor, columns: Tensor) -> Tensor:
    """[row, column, d_model] out of [row, position, d_model]; 0 where a column is −1."""
    rows = torch.arange(len(value))[:, None]
    return value[rows, columns.clamp(min=0)] * (columns >= 0)[:, :, None]


def split_rows(n_rows: int, n_positions: int) -> list[slice]:
    """All rows in parts of a bounded number of tokens."""
    size = max(1, TOKENS_AT_ONCE // n_positions)
    return [slice(start, start + size) for start in range(0, n_rows, size)]
