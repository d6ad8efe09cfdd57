"""Made-up datasets of study 3's experiments: what curves, claims, figures and sentences are tested on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from bindscope.studies.symbols.experiments.define import MODELS

SPLITS = ("train", "validation", "test")
STEPS = (0, 25, 50)
Values = float | Sequence[float]  # of one seed after another


def made_curves(
    curves: Mapping[str | tuple[str, int], Mapping[int, Values]],
    preset: str = "templates-same-different",
    n_seeds: int = 3,
    train: float = 0.001,
    spread: float = 0.02,
    labels: Mapping[str, Sequence[str | float]] | None = None,
) -> xr.Dataset:
    """Runs whose test loss and error end at the given values: model, or (model, heads) → n → value.

    One number is given to every seed, scattered by ``spread`` of itself; several numbers are one seed's each. The
    training sequences end at ``train``.

    >>> made_curves({"plain": {64: 0.9, 512: [0.3, 0.4]}, ("plain", 16): {512: 0.5}}).sizes["variant"]
    3
    """
    cells = [(*_split(key), n, values) for key, points in curves.items() for n, values in points.items()]
    scatter = 1 + spread * np.linspace(-1, 1, n_seeds) if n_seeds > 1 else np.ones(1)
    last = np.full((len(cells), n_seeds, len(SPLITS)), np.nan)
    for row, (_, _, _, values) in enumerate(cells):
        ended = values * scatter if isinstance(values, int | float) else np.array(values, float)
        last[row, : len(ended), 1:] = ended[:, None]
        last[row, : len(ended), 0] = train
    over_steps = np.stack([np.ones_like(last), (1 + last) / 2, last], 2)
    dims, names = ("variant", "seed", "split"), [_name(*cell[:3]) for cell in cells]
    if labels:
        names = [f"{name}-{index}" for index, name in enumerate(names)]
    return xr.Dataset(
        {
            "last_loss": (dims, last),
            "last_accuracy": (dims, 1 - np.minimum(last, 1)),
            "split_loss": (("variant", "seed", "step", "split"), over_steps),
            "split_accuracy": (("variant", "seed", "step", "split"), 1 - np.minimum(over_steps, 1)),
            "last_step": (dims[:2], np.where(np.isnan(last[..., 2]), np.nan, STEPS[-1])),
            "seconds": (dims[:2], np.where(np.isnan(last[..., 2]), np.nan, 12.0)),
            "status": (dims[:2], np.where(np.isnan(last[..., 2]), "", "finished")),
            "split_n": ("split", [500.0] * 3),
        },
        {
            "variant": names,
            "seed": np.arange(n_seeds),
            "step": list(STEPS),
            "split": list(SPLITS),
            "model": ("variant", [cell[0] for cell in cells]),
            "heads": ("variant", [cell[1] for cell in cells]),
            "n": ("variant", [cell[2] for cell in cells]),
            **{label: ("variant", list(values)) for label, values in (labels or {}).items()},
        },
        {
            "title": "experiment made",
            "preset": preset,
            "meanings": json.dumps({name: MODELS[cell[0]][0] for name, cell in zip(names, cells)}),
        },
    )


def _split(key: str | tuple[str, int]) -> tuple[str, int]:
    return (key, 4) if isinstance(key, str) else key


def _name(model: str, heads: int, n: int) -> str:
    return f"{model}-{n}" + ("-paper" if heads == 16 else "")


def made_gains(best: float = 100.0, preset: str = "templates-aba-abb") -> xr.Dataset:
    """What the experiment on gains saves, when a gain of ``best`` has the lowest loss on validation symbols."""
    gains = [10.0, 100.0, 300.0]
    validation = np.array([[0.1 if gain == best else 0.5] * 2 for gain in gains])
    dataset = made_curves({"both": {64: 0.2}}, preset=preset, n_seeds=2).isel(variant=[0] * len(gains)).copy(deep=True)
    dataset.last_loss.loc[{"split": "validation"}] = validation
    labels = {"variant": [f"both-gain-{gain:g}" for gain in gains], "value": ("variant", gains)}
    return dataset.assign_coords(labels).assign_attrs(title="experiment gain")
