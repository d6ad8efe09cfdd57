"""A pretrained GPT-2 beside one of the same shape from scratch: how many sequences each needs.

>>> comparison = compare_pretrained(dataset)
>>> comparison.ratio[0]  # from scratch it takes this many times as many sequences
8.0
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from bindscope.measures.stats.crossings import Crossing, ratio_of
from bindscope.studies.symbols.efficiency.curves import Curve, curve_of, half_loss_n
from bindscope.studies.symbols.pretrained.define import GPT2_TOKENS, PRETRAINED, SCRATCH, TORCH


@dataclass(frozen=True, order=True)
class Shape:
    """What two models must share to be compared."""

    layers: int
    width: int
    heads: int

    def __str__(self) -> str:
        return f"{self.layers} layers of {self.width}"


@dataclass(frozen=True)
class Comparison:
    """The n of half loss of a pretrained model, and of the same from scratch where that was trained."""

    shape: Shape
    tokens: int  # how many tokens the pretrained one knows
    pretrained: Crossing
    scratch: Crossing | None

    @property
    def is_gpt2(self) -> bool:
        """Whether the weights are taken to be GPT-2's own, by their vocabulary."""
        return self.tokens == GPT2_TOKENS

    @property
    def word(self) -> str:
        return "pretrained" if self.is_gpt2 else "stand-in"

    @property
    def ratio(self) -> tuple[float, float | None, float | None]:
        """How many times as many sequences it takes from scratch, with an interval where there are seeds.

        NaN where nothing is known of it: neither reaches half loss, or one was not trained.
        """
        if self.scratch is None or self.scratch.censored == self.pretrained.censored == "above":
            return np.nan, None, None
        return ratio_of(self.scratch, self.pretrained)

    @property
    def is_bound(self) -> bool:
        """Whether the ratio is only a lower bound: a crossing lies outside the trained n."""
        return self.scratch is not None and (self.scratch.censored == "above" or self.pretrained.censored == "below")


def shapes_of(dataset: xr.Dataset, model: str) -> list[Shape]:
    """The shapes in which a model has runs that ended, smallest first."""
    ended = dataset.last_loss.sel(split="test").notnull().any("seed").values & (dataset.model.values == model)
    chosen = dataset.isel(variant=np.flatnonzero(ended))
    columns = (chosen.layers.values, chosen.width.values, chosen.heads.values)
    return sorted({Shape(*map(int, row)) for row in zip(*columns)})


def model_curve(dataset: xr.Dataset, model: str, shape: Shape, split: str = "test") -> Curve:
    """Loss over n of a model of one shape, in one of the splits."""
    return curve_of(dataset, model, shape.heads, split, layers=shape.layers, width=shape.width)


def crossing_of(dataset: xr.Dataset, model: str, shape: Shape) -> Crossing:
    """The n of half loss of a model of one shape."""
    return half_loss_n(dataset, model, shape.heads, layers=shape.layers, width=shape.width)


def compare_pretrained(dataset: xr.Dataset) -> Comparison | None:
    """The largest pretrained model of the dataset beside the same from scratch; None where none was trained."""
    shapes = shapes_of(dataset, PRETRAINED)
    if not shapes:
        return None
    shape = shapes[-1]
    tokens = int(dataset.tokens.values[dataset.model.values == PRETRAINED].max())
    scratch = crossing_of(dataset, SCRATCH, shape) if shape in shapes_of(dataset, SCRATCH) else None
    return Comparison(shape, tokens, crossing_of(dataset, PRETRAINED, shape), scratch)


def largest_shared_n(dataset: xr.Dataset, shape: Shape) -> int | None:
    """The largest n at which both the pretrained model and the one from scratch were trained; None where there is none."""
    pretrained, scratch = (model_curve(dataset, model, shape).n.tolist() for model in (PRETRAINED, SCRATCH))
    return max(set(pretrained) & set(scratch), default=None)


def conclude_gpt2(dataset: xr.Dataset) -> str:
    """What each model needed, in sentences made from the numbers.

    >>> conclude_gpt2(load_experiment_dataset(find_experiment_dataset("gpt2")))
    'From scratch, 4 layers of 128: half loss at n > 2,048 …'
    """
    words = {
        SCRATCH: "From scratch as GPT-2 is drawn", TORCH: "From scratch as torch draws weights", PRETRAINED: "Pretrained",
    }  # fmt: skip
    sentences = []
    for model, word in words.items():
        for shape in shapes_of(dataset, model):
            last = model_curve(dataset, model, shape).points[-1]
            half = crossing_of(dataset, model, shape)
            where = f"n {half}" if half.censored else f"n = {half}"
            sentences.append(f"{word}, {shape}: half loss at {where}; test loss {last.value:.2f} at n = {last.n:,}.")
    comparison = compare_pretrained(dataset)
    if comparison is not None and not comparison.is_gpt2:
        sentences.append(
            f"The pretrained weights know {comparison.tokens:,} tokens and not GPT-2's {GPT2_TOKENS:,}: they stand in for it."
        )
    return " ".join(sentences)
