"""Which features of the residual stream at right-hand sides tell what of their line, and from which checkpoint on.

A crosscoder (``measures/crosscoder.py``) is fitted to the residual stream at the right-hand sides of all lines. Its features are called after
what they fire on, on programs that it was not fitted to: the name that the line assigns, the token itself, the number of the
line, or, where the line refers to another, the value it takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.measures.crosscoder import (
    FIRES,
    UNEXPLAINED,
    Crosscoder,
    CrosscoderSettings,
    find_onsets,
    fit_crosscoder,
    label_features,
    match_features,
)
from bindscope.model.transformer import Transformer
from bindscope.subspaces.stream import read_layers
from bindscope.tasks.binding import BindingTask, columns_of, programs_of
from bindscope.tasks.binding.positions import LINE_PARTS, LINE_WIDTH

LABELS = ("name", "token", "value", "line")
WORDS = {"name": "the name on a line at its right-hand side", "value": "the value that a reference takes"}
HELD_OUT = 3  # a third of the programs is not fitted to
ENOUGH = 10  # features of a kind in every dictionary, for a sentence about them


@dataclass(frozen=True, eq=False)
class RightHandSides:
    """Programs, where their right-hand sides stand, and what can be said of each."""

    tokens: np.ndarray  # [program, position]
    columns: np.ndarray  # [program, line]
    labels: Mapping[str, np.ndarray]  # each [program · line], −1 where it does not apply
    n_fitted: int  # of the right-hand sides, the first; the others are measured on

    @property
    def measured(self) -> dict[str, np.ndarray]:
        """The labels of those that are measured on."""
        return {name: label[self.n_fitted :] for name, label in self.labels.items()}


def draw_right_hand_sides(task: BindingTask, rng: np.random.Generator, n: int) -> RightHandSides:
    """The right-hand sides of ``n`` programs of the longest length."""
    batch = task.ask(*task.sample_questions(rng, n, task.lines))
    programs, _ = programs_of(batch)
    right = LINE_WIDTH * np.arange(programs.n_lines) + LINE_PARTS.index("rhs")
    labels = {
        "name": programs.variables,
        "token": programs.source,
        "value": np.where(programs.is_constant, -1, programs.value),
        "line": np.broadcast_to(np.arange(programs.n_lines), programs.value.shape),
    }
    n_fitted = (n - n // HELD_OUT) * programs.n_lines
    columns = np.tile(columns_of(batch)[right], (n, 1))
    return RightHandSides(batch.tokens, columns, {name: labels[name].ravel().astype(int) for name in LABELS}, n_fitted)


def read_right_hand_sides(model: Transformer, drawn: RightHandSides, layers: Sequence[int]) -> dict[int, Tensor]:
    """The residual stream that enters each layer, [program · line, d_model]."""
    return {
        layer: value.flatten(0, 1).float()
        for layer, value in read_layers(model, drawn.tokens, layers, drawn.columns).items()
    }


def measure_line_features(
    streams: Tensor, drawn: RightHandSides, settings: CrosscoderSettings, seeds: Sequence[int]
) -> xr.Dataset:
    """Of streams [step, right-hand side, d_model] of one layer, over (seed, feature, …), one dictionary a seed.

    ``norm`` (step): relative norms; ``onset``: an index of steps; ``kind``, ``explained`` and ``control`` (label): what a feature fires on;
    ``twin``: the highest cosine with a feature of another seed; ``explained_variance`` (step) and ``active``, features at a
    token, are of the whole dictionary.
    """
    fitted, measured = streams[:, : drawn.n_fitted], streams[:, drawn.n_fitted :]
    found = [fit_crosscoder(fitted, settings, torch.Generator().manual_seed(seed)) for seed in seeds]
    parts = [_describe(crosscoder, measured, drawn, seed) for crosscoder, seed in zip(found, seeds)]
    twins = [
        np.max([match_features(own.decoder, other.decoder) for other in found if other is not own], axis=0, initial=0)
        for own in found
    ]
    dataset = xr.concat(parts, xr.IndexVariable("seed", list(seeds)))
    return dataset.assign(twin=(("seed", "feature"), np.stack(twins)))


def describe_line_features(dataset: xr.Dataset) -> str:
    """When features that tell a line's name appear, those that tell a value, and what those that tell the token do meanwhile.

    Each of the layer that has most of them; the numbers are of each dictionary.
    """
    names, values = (_describe_growth(dataset, kind) for kind in ("name", "value"))
    one = dataset.sel(layer=layer_with_most(dataset, "name"))
    counts = count_kind(one, "token")
    if min(counts + count_kind(one, "name")) < ENOUGH:
        return f"{names}; {values}."
    before, after, _ = growth_of(one.isel(seed=0), "name")
    norm = mean_norm(one, "token")
    changes = [f"{change:+.2f}" for change in (norm.sel(step=after) - norm.sel(step=before)).values]
    tokens = f"{_join(counts)} entering L{int(one.layer)} tell the token and change by {_join(changes)} from step {before:,} to {after:,}"
    return f"{names}; {values}; {tokens}."


def layer_with_most(dataset: xr.Dataset, kind: str) -> int:
    """The layer with the most features of a kind, in the dictionary that has fewer."""
    return int(dataset.layer[int((dataset.kind == kind).sum("feature").min("seed").argmax("layer"))])


def summarise_kinds(dataset: xr.Dataset) -> xr.Dataset:
    """``count`` of features, their mean ``norm`` (step), and how many have their ``onset`` (step) there, over (…, kind)."""
    names = [*LABELS, UNEXPLAINED]
    own = xr.concat([dataset.kind == name for name in names], xr.IndexVariable("kind", names))
    at = dataset.onset == xr.DataArray(np.arange(dataset.sizes["step"]), {"step": dataset.step}, "step")
    return xr.Dataset(
        {
            "count": own.sum("feature"),
            "norm": dataset.norm.where(own).mean("feature"),
            "onset": (own & at).sum("feature"),
        }
    )


def count_kind(dataset: xr.Dataset, kind: str) -> list[int]:
    """How many features of a kind each dictionary of one layer has."""
    return [int(count) for count in (dataset.kind == kind).sum("feature")]


def mean_norm(dataset: xr.Dataset, kind: str) -> xr.DataArray:
    """The mean relative norm of features of one kind over (…, step), of one layer; unknown where there is none."""
    return dataset.norm.where(dataset.kind == kind).mean("feature")


def growth_of(dataset: xr.Dataset, kind: str) -> tuple[int, int, float]:
    """Between which two checkpoints the mean relative norm of a kind grows most, and by how much."""
    norm = mean_norm(dataset, kind)
    growth = np.diff(norm.values)
    index = int(growth.argmax())
    return int(norm.step[index]), int(norm.step[index + 1]), float(growth[index])


def _describe(crosscoder: Crosscoder, streams: Tensor, drawn: RightHandSides, seed: int) -> xr.Dataset:
    activations = crosscoder.activations(streams).numpy().astype(np.float64)
    labels = label_features(activations, drawn.measured, np.random.default_rng(seed))
    norms = crosscoder.relative_norms
    return xr.Dataset(
        {
            "norm": (("feature", "step"), norms.T.numpy()),
            "onset": ("feature", find_onsets(norms).numpy().astype(np.int8)),
            "explained": (("feature", "label"), labels.explained),
            "control": (("feature", "label"), labels.control),
            "explained_variance": ("step", crosscoder.explained_variance(streams).numpy()),
            "active": ((), (activations > FIRES).sum(1).mean()),
            "kind": ("feature", labels.kind),
        },
        {"label": list(LABELS)},
    )


def _describe_growth(dataset: xr.Dataset, kind: str) -> str:
    layer = layer_with_most(dataset, kind)
    one = dataset.sel(layer=layer)
    counts = count_kind(one, kind)
    tell = f"{_join(counts)} of {dataset.sizes['feature']} features entering L{layer} tell {WORDS[kind]}"
    if min(counts) < ENOUGH:
        return f"{tell}, too few to say when they appear"
    growths = [growth_of(one.sel(seed=seed), kind) for seed in one.seed.values]
    spans = dict.fromkeys(f"from step {before:,} to {after:,}" for before, after, _ in growths)
    grown = _join([f"{growth:+.2f}" for *_, growth in growths])
    return f"{tell} and grow most {' or '.join(spans)}, by {grown} of their largest norm"


def _join(items: Sequence[object]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    words = [str(item) for item in items]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
