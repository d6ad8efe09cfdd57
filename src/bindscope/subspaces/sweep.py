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
from bindscope.subspaces.stream import Change, read_layers, run_changed
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
    for column, position in enumerate(positions):
        cell = _Position(model, fit, test, position, search, layers)
        n_pairs[column] = len(cell.present)
        for row, layer in enumerate(layers):
            measured = cell.measure(replace(search, layer=layer, position=position), generator, least_whole)
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


class _Position:
    """One position at all layers: its streams are read once; pairs without it are left out of the test."""

    def __init__(
        self,
        model: Transformer,
        fit: CounterfactualPairs,
        test: CounterfactualPairs,
        position: str,
        search: Search,
        layers: Sequence[int],
    ) -> None:
        self.model, self.fit, self.test = model, fit, test
        fit_columns, self.columns = find_columns(fit, position), find_columns(test, position)
        self.present = np.flatnonzero((self.columns >= 0).any(1))  # [pair]
        self.fit_stream = read_layers(model, fit.base_tokens, layers, fit_columns)
        self.base = read_layers(model, test.base_tokens, layers, self.columns)
        self.source = read_layers(model, test.counterfactual_tokens, layers, self.columns)
        self.fit_labels = label_columns(fit.base, fit_columns, search.of)
        self.labels = label_columns(test.base, self.columns, search.of)

    def measure(self, search: Search, generator: torch.Generator, least_whole: float) -> dict[str, float]:
        if len(self.present) == 0:
            return {}
        whole = self._success(search.layer, lambda base, source: source)
        if whole < least_whole:
            return {"whole_stream": whole}
        fit = label_stream(self.fit_stream[search.layer], self.fit_labels, search.position)
        found = fit_search(self.model, self.fit, fit, search, generator)
        drawn = random_subspace(found.d_model, found.rank, generator)
        return {
            "whole_stream": whole,
            "found": self._success(search.layer, found.swap),
            "random": self._success(search.layer, drawn.swap),
            "score": float(score_subspace(found, fit, self._samples(search), search.of).mean()),
        }

    def _samples(self, search: Search) -> Samples:
        return label_stream(self.base[search.layer], self.labels, search.position)

    def _success(self, layer: int, change: Change) -> float:
        source: Tensor = self.source[layer]
        top = run_changed(self.model, self.test, layer, self.columns, source, change).argmax(-1).numpy()
        return float((top == self.test.counterfactual_answers)[self.present].mean())
