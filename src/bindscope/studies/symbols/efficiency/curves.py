"""Data-efficiency curves: what a model answers about unseen symbols, by the number n of its training sequences.

The dataset of an experiment of study 3 holds one variant for each model and n. For real labels a curve is of the test
loss, where 1 is knowing nothing; for symbolic labels it is of the error, the fraction of wrong answers. A curve has points
of one number of heads only: a model of fewer heads and one of the paper's are two models. Baselines have no heads.

>>> curve = curve_of(dataset, "both")
>>> [(point.n, round(point.value, 2)) for point in curve.points]
[(8, 0.97), (16, 0.71), (32, 0.28), (64, 0.03)]
>>> str(half_loss_n(dataset, "both"))
'23 [19–27]'
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.intervals import student_interval, wilson_interval
from bindscope.measures.stats.crossings import Crossing, Find, find_crossing, last_above
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.symbols.experiments.define import FEWER_HEADS, MODELS, PAPER_HEADS
from bindscope.tasks.templates import TemplateTask

HALF = 0.5
MODEL_NAMES: Mapping[str, str] = {
    "plain": "transformer",
    "kq": "KQ scaling",
    "vo": "VO scaling",
    "both": "both scalings",
    "mimetic": "mimetic start",
    "last-layer": "last layer only",
    "one-hot-mlp": "one-hot MLP",
    "embedding-mlp": "embedding MLP",
    "relation-mlp": "MLP with XXᵀ",
    "rnn": "RNN",
    "lstm": "LSTM",
}  # short, for figures and sentences
FEWER, PAPER = int(FEWER_HEADS["model.n_heads"]), int(PAPER_HEADS["model.n_heads"])


@dataclass(frozen=True)
class Point:
    """What the seeds of a model ended with at one n: their mean and its 95 % interval, and each of them.

    With several seeds the interval is Student's, over seeds; of one seed's error it is Wilson's, over test sequences; one
    seed's loss has none.
    """

    n: int
    value: float
    low: float | None
    high: float | None
    seeds: tuple[float, ...]


@dataclass(frozen=True)
class Curve:
    """A model's points, smallest n first."""

    model: str
    measure: Literal["loss", "error"]
    split: str
    points: tuple[Point, ...]

    @property
    def n(self) -> np.ndarray:
        return np.array([point.n for point in self.points])

    @property
    def values(self) -> np.ndarray:
        return np.array([point.value for point in self.points])

    def at(self, n: int) -> Point | None:
        """The point of this n; None where it was not trained."""
        return next((point for point in self.points if point.n == n), None)


def task_of(dataset: xr.Dataset) -> TemplateTask:
    """The task that the experiment trains: its preset's, or the one that all of its runs change it to."""
    task = find_preset(str(dataset.attrs["preset"])).config.task
    if not isinstance(task, TemplateTask):
        raise BindscopeError(f"{dataset.attrs.get('title', 'dataset')}: this is no experiment on templates.")
    changed = json.loads(dataset.attrs.get("common_changes", "{}")).get("task.name")
    return task if changed is None else replace(task, name=changed)


def measure_of(dataset: xr.Dataset) -> Literal["loss", "error"]:
    """What its curves are of: the loss for real labels, the error for symbolic ones."""
    return "loss" if task_of(dataset).target_kind == "real" else "error"


def models_of(dataset: xr.Dataset, heads: int = FEWER) -> list[str]:
    """Models that have a run with this number of heads, in the study's order; baselines in any case."""
    trained = dataset.last_loss.sel(split="test").notnull().any("seed").values
    found = {
        str(model)
        for model, its_heads, known in zip(dataset.model.values, dataset.heads.values, trained)
        if known and (int(its_heads) == heads or is_baseline(str(model)))
    }
    return [model for model in MODELS if model in found]


def is_baseline(model: str) -> bool:
    """Whether a simpler network stands in the transformer's place."""
    return model in MODELS and "baseline.kind" in MODELS[model][1]


def choose_heads(dataset: xr.Dataset, models: Sequence[str], fewest: int = 2) -> int:
    """The paper's heads where each of these models has ``fewest`` or more n trained with them, else fewer heads."""

    def n_points(model: str) -> int:
        return len(curve_of(dataset, model, PAPER).points) if model in models_of(dataset, PAPER) else 0

    headed = [model for model in models if not is_baseline(model)]
    return PAPER if headed and min(map(n_points, headed)) >= fewest else FEWER


def curve_of(dataset: xr.Dataset, model: str, heads: int = FEWER, split: str = "test", **where: str | float) -> Curve:
    """The curve of a model with this number of heads; ``width=64`` and the like choose among further labels.

    >>> curve_of(dataset, "plain", width=64).values
    """
    chosen = _choose(dataset, model, heads, where)
    measure = measure_of(dataset)
    ended = chosen.last_loss if measure == "loss" else 1 - chosen.last_accuracy
    rows = ended.sel(split=split).transpose("variant", "seed").values.astype(float)
    n_sequences = int(dataset.split_n.sel(split=split)) if "split_n" in dataset else 0
    points = [
        _summarise(int(n), row[np.isfinite(row)], measure, n_sequences)
        for n, row in sorted(zip(chosen.n.values, rows), key=lambda each: int(each[0]))
        if np.isfinite(row).any()
    ]
    return Curve(model, measure, split, tuple(points))


def half_loss_n(
    dataset: xr.Dataset,
    model: str,
    heads: int = FEWER,
    level: float = HALF,
    rng: np.random.Generator | None = None,
    **where: str | float,
) -> Crossing:
    """The n from which on the mean loss (or error) is below a half, interpolated in log n.

    Its interval is that of seeds drawn again at each n, 95 % of them; a curve of single seeds has none.
    """
    curve = curve_of(dataset, model, heads, "test", **where)
    return _cross(curve, last_above(level), rng)


def _cross(curve: Curve, find: Find, rng: np.random.Generator | None) -> Crossing:
    if not curve.points:
        raise BindscopeError(f"'{curve.model}': no run of this curve has ended yet.")
    return find_crossing(curve.n, [point.seeds for point in curve.points], find, rng)


def _choose(dataset: xr.Dataset, model: str, heads: int, where: dict[str, str | float]) -> xr.Dataset:
    """The variants of one curve: one for each n, or an error that says what else they differ in."""
    known = sorted({str(each) for each in dataset.model.values})
    if model not in known:
        raise BindscopeError(f"{_title(dataset)}: there is no model '{model}'.{suggest_nearest(model, known)}")
    mask = dataset.model.values == model
    if not is_baseline(model):
        mask &= dataset.heads.values == heads
    for label, value in where.items():
        if label not in dataset.coords:
            raise BindscopeError(f"{_title(dataset)}: its variants have no label '{label}'.")
        mask &= dataset[label].values == value
    chosen = dataset.isel(variant=np.flatnonzero(mask))
    sizes, counts = np.unique(chosen.n.values, return_counts=True)
    if (counts > 1).any():
        labels = ", ".join(str(name) for name in ("width", "setting", "value") if name in dataset.coords) or "heads"
        raise BindscopeError(
            f"{_title(dataset)}: '{model}' has {counts.max()} variants of n = {sizes[counts.argmax()]}; name their {labels}."
        )
    return chosen


def _title(dataset: xr.Dataset) -> str:
    return str(dataset.attrs.get("title", "dataset"))


def _summarise(n: int, seeds: np.ndarray, measure: str, n_sequences: int) -> Point:
    mean, low, high = float(seeds.mean()), None, None
    if len(seeds) > 1:
        low, high = student_interval(seeds)
        low, high = max(low, 0.0), min(high, 1.0) if measure == "error" else high
    elif measure == "error" and n_sequences:
        low, high = (float(end) for end in wilson_interval(mean * n_sequences, n_sequences))
    return Point(n, mean, low, high, tuple(float(value) for value in seeds))
