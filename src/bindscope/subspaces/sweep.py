"""Where a subspace works: the search repeated at many layers and positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.model.transformer import Transformer
from bindscope.subspaces.find import Samples, label_stream
from bindscope.subspaces.measure import Search, check_search, describe_search, fit_search, score_subspace
from bindscope.subspaces.positions import find_columns, label_columns, named_columns
from bindscope.subspaces.stream import Change, keep_base, read_layers, run_changed
from bindscope.subspaces.subspace import random_subspace
from bindscope.tasks.binding import CounterfactualPairs

QUANTITIES = ("found", "whole_stream", "random", "score")
LEAST_WHOLE = 0.1  # where even the whole residual stream carries less than this, no subspace is looked for


def sweep_subspaces(
    model: Transformer,
    fit: CounterfactualPairs,
    test: CounterfactualPairs,
    search: Search,
    generator: torch.Generator,
    *,
    layers: Sequence[int] | None = None,
    positions: Sequence[str] | None = None,
    least_whole: float = LEAST_WHOLE,
    on_progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """A search at every layer and position: dims (layer, position) of swap success, and ``score`` as in ``measure_subspace``.

    ``found``, ``random`` and ``score`` are missing where the whole residual stream's success is below ``least_whole``.

    >>> sweep_subspaces(model, fit, test, Search(of="values"), generator).found.max("position")
    """
    layers = range(model.config.n_layers) if layers is None else layers
    positions = [name for name in named_columns(fit) if name != "distractor"] if positions is None else positions
    for layer in layers:
        for position in positions:
            check_search(model, fit, replace(search, layer=layer, position=position))
    grid = {name: np.full((len(layers), len(positions)), np.nan) for name in QUANTITIES}
    n_pairs = np.zeros(len(positions), int)
    swept = _Swept(model, fit, test, layers, positions)
    for column, position in enumerate(positions):
        n_pairs[column] = len(swept.present(position))
        for row, layer in enumerate(layers):
            measured = swept.measure(replace(search, layer=layer, position=position), generator, least_whole)
            for name, value in measured.items():
                grid[name][row, column] = value
            if on_progress:
                on_progress(column * len(layers) + row + 1, len(layers) * len(positions))
    dims = ("layer", "position")
    variables = {name: (dims, values, {"units": "fraction"}) for name, values in grid.items()}
    dataset = xr.Dataset(
        {**variables, "n": ("position", n_pairs)}, {"layer": list(layers), "position": list(positions)}
    )
    described = describe_search(search, fit, test)
    dataset.attrs = {name: value for name, value in described.items() if name not in dims} | {
        "least_whole": least_whole
    }
    return dataset


class _Swept:
    """All positions at all layers: every stream is read once, and every swap goes on from the same base runs."""

    def __init__(
        self,
        model: Transformer,
        fit: CounterfactualPairs,
        test: CounterfactualPairs,
        layers: Sequence[int],
        positions: Sequence[str],
    ) -> None:
        self.model, self.fit, self.test = model, fit, test
        self.fit_stream = _Streams(model, fit, fit.base_tokens, layers, positions)
        self.base = _Streams(model, test, test.base_tokens, layers, positions)
        self.source = _Streams(model, test, test.counterfactual_tokens, layers, positions)
        self.kept = keep_base(model, test, min(layers))

    def present(self, position: str) -> np.ndarray:
        """The pairs that have this position, [pair]; the others are left out of the test."""
        return np.flatnonzero((self.base.columns[position] >= 0).any(1))

    def measure(self, search: Search, generator: torch.Generator, least_whole: float) -> dict[str, float]:
        if len(self.present(search.position)) == 0:
            return {}
        whole = self._success(search, lambda base, source: source)
        if whole < least_whole:
            return {"whole_stream": whole}
        fit, test = self.fit_stream.samples(search), self.base.samples(search)
        found = fit_search(self.model, self.fit, fit, search, generator)
        drawn = random_subspace(found.d_model, found.rank, generator)
        return {
            "whole_stream": whole,
            "found": self._success(search, found.swap),
            "random": self._success(search, drawn.swap),
            "score": float(score_subspace(found, fit, test, search.of).mean()),
        }

    def _success(self, search: Search, change: Change) -> float:
        layer, columns = search.layer, self.base.columns[search.position]
        source = self.source.at(layer, search.position)
        top = run_changed(self.model, self.test, layer, columns, source, change, self.kept).argmax(-1).numpy()
        return float((top == self.test.counterfactual_answers)[self.present(search.position)].mean())


class _Streams:
    """The residual stream at all layers and positions, from one run."""

    def __init__(
        self,
        model: Transformer,
        pairs: CounterfactualPairs,
        tokens: np.ndarray,
        layers: Sequence[int],
        positions: Sequence[str],
    ) -> None:
        self.pairs = pairs
        self.columns = {position: find_columns(pairs, position) for position in positions}  # each [pair, column]
        self.values = read_layers(model, tokens, layers, np.concatenate(list(self.columns.values()), axis=1))

    def at(self, layer: int, position: str) -> Tensor:
        """[pair, column, d_model]"""
        widths = [columns.shape[1] for columns in self.columns.values()]
        return self.values[layer].split(widths, dim=1)[list(self.columns).index(position)]

    def samples(self, search: Search) -> Samples:
        labels = label_columns(self.pairs.base, self.columns[search.position], search.of)
        return label_stream(self.at(search.layer, search.position), labels, search.position)
