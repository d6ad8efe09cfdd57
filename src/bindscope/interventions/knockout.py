"""Attention knock-out: cut what one position may see of another, and see which answers fall.

An edge is written from the position that attends to the position that is attended to: ``colon>query``, ``rhs 2>rhs 1``. Where it
is cut, the score is −∞ and the rest of the row is renormalised, identity-scaling term included, so the head looks elsewhere.

    >>> edge = name_edge("colon>query", named_positions(pairs))
    >>> dataset = knock_out_edges(model, pairs.base, [edge])
    >>> accuracy_by(dataset, "depth")

An example that lacks one of the two positions has no such edge; it is missing from the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.interventions.address import Columns, mark_columns, resolve_site
from bindscope.interventions.answers import Edits, label_answers, read_changed
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer
from bindscope.tasks.task import Batch

Progress = Callable[[int, int], None]
HIDDEN = float("-inf")


@dataclass(frozen=True, eq=False)
class Edge:
    """What is cut: in each row every column of ``query`` from seeing any column of ``key``; −1 for none."""

    query: Columns  # [row] or [row, k], or marks [row, position]: who looks
    key: Columns  # the same: what is attended to
    layer: int | None = None  # None: in all layers
    head: int | None = None  # None: in all heads
    name: str = "edge"

    def mark(self, n_rows: int, n_positions: int) -> np.ndarray:
        """The cut pairs of columns, [row, query, key]."""
        query, key = (mark_columns(columns, n_rows, n_positions) for columns in (self.query, self.key))
        return query[:, :, None] & key[:, None, :]


def name_edge(
    text: str, positions: Mapping[str, np.ndarray], layer: int | None = None, head: int | None = None
) -> Edge:
    """The edge between two named positions: ``name_edge("query>rhs 2", named_positions(pairs), layer=3)``."""
    looker, arrow, target = (part.strip() for part in text.partition(">"))
    if not arrow or not looker or not target:
        raise BindscopeError(f"edge '{text}': write who looks and what it attends to, as in 'colon>query'.")
    for position in (looker, target):
        if position not in positions:
            raise BindscopeError(
                f"edge '{text}': there is no position '{position}'.{suggest_nearest(position, positions)}"
            )
    return Edge(positions[looker], positions[target], layer, head, f"{looker}>{target}")


def knock_out_edges(model: Transformer, batch: Batch, edges: Iterable[Edge]) -> xr.Dataset:
    """All ``edges`` cut at once: ``correct``, ``answer`` and ``log_probability`` over (example,)."""
    edges = list(edges)
    readings = _cut(model, batch, edges)
    return label_answers(model, batch, readings, (), {}, _describe([edge.name for edge in edges]))


def knock_out_each(
    model: Transformer, batch: Batch, edges: Sequence[Edge], on_progress: Progress | None = None
) -> xr.Dataset:
    """Each edge alone, over (edge, example)."""
    readings = _cut_each(model, batch, edges, on_progress)
    names = [edge.name for edge in edges]
    return label_answers(model, batch, readings, ("edge",), {"edge": names}, _describe(names))


def knock_out_grid(model: Transformer, batch: Batch, edge: Edge, on_progress: Progress | None = None) -> xr.Dataset:
    """One edge cut in each head alone, over (layer, head, example)."""
    layers, heads = range(model.config.n_layers), range(model.config.n_heads)
    each = [replace(edge, layer=layer, head=head) for layer in layers for head in heads]
    readings = _cut_each(model, batch, each, on_progress)
    grid = {name: values.reshape(len(layers), len(heads), -1) for name, values in readings.items()}
    coords = {"layer": list(layers), "head": list(heads)}
    return label_answers(model, batch, grid, ("layer", "head"), coords, _describe([edge.name]))


def cut_edits(model: Transformer, edges: Sequence[Edge], shape: tuple[int, int]) -> Callable[[slice], Edits]:
    """What ``run`` writes at rows of a batch of this shape to cut these edges."""
    marks = [torch.from_numpy(edge.mark(*shape)) for edge in edges]
    _check_edges(model, edges, marks)
    layers = range(model.config.n_layers)

    def cut(layer: int, rows: slice) -> Callable[[Tensor], Tensor]:
        def edit(scores: Tensor) -> Tensor:  # [row, head, query, key]
            changed = scores.clone()
            for edge, mark in zip(edges, marks):
                if edge.layer in (None, layer):
                    heads = slice(None) if edge.head is None else slice(edge.head, edge.head + 1)
                    changed[:, heads] = changed[:, heads].masked_fill(mark[rows, None].to(scores.device), HIDDEN)
            if bool((changed == HIDDEN).all(-1).any()):
                raise BindscopeError(f"layer {layer}: with these edges cut a position has nothing left to attend to.")
            return changed

        return edit

    touched = [layer for layer in layers if any(edge.layer in (None, layer) for edge in edges)]
    return lambda rows: {Site("scores", layer): cut(layer, rows) for layer in touched}


def _cut(model: Transformer, batch: Batch, edges: Sequence[Edge]) -> dict[str, np.ndarray]:
    n_rows, n_positions = batch.tokens.shape
    readings = read_changed(model, batch, cut_edits(model, edges, (n_rows, n_positions)))
    present = np.any([edge.mark(n_rows, n_positions).any((1, 2)) for edge in edges], axis=0)  # [row]
    return {
        name: np.where(present, values, -1 if np.issubdtype(values.dtype, np.integer) else np.nan)
        for name, values in readings.items()
    }


def _cut_each(
    model: Transformer, batch: Batch, edges: Sequence[Edge], on_progress: Progress | None
) -> dict[str, np.ndarray]:
    if not edges:
        raise BindscopeError("no edge to cut was given; name one, such as 'colon>query'.")
    readings = []
    for done, edge in enumerate(edges, start=1):
        readings.append(_cut(model, batch, [edge]))
        if on_progress is not None:
            on_progress(done, len(edges))
    return {name: np.stack([reading[name] for reading in readings]) for name in readings[0]}


def _check_edges(model: Transformer, edges: Sequence[Edge], marks: Sequence[Tensor]) -> None:
    if not edges:
        raise BindscopeError("no edge to cut was given; name one, such as 'colon>query'.")
    for edge, mark in zip(edges, marks):
        resolve_site(Site("scores", edge.layer or 0, edge.head), model, mark.shape[1])
        if not bool(mark.any()):
            raise BindscopeError(f"edge '{edge.name}': no program here has both positions.")
        if model.config.causal and not bool(mark.tril().any()):
            raise BindscopeError(
                f"edge '{edge.name}': the first position stands before the second and cannot see it; turn them round."
            )


def _describe(names: Sequence[str]) -> dict[str, object]:
    return {"cut": ", ".join(dict.fromkeys(names)), "how": "score −∞, the rest of the row renormalised"}
