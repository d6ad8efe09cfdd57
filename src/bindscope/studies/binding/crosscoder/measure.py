"""The result ``crosscoder``: features of the residual stream at right-hand sides that checkpoints around the end of the plateau share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.errors import NotYet
from bindscope.studies.development.packing import pack_small
from bindscope.studies.framework.claims import Drawing
from bindscope.studies.framework.experiments import defer
from bindscope.studies.framework.measuring import round_bits, steps_around_plateau
from bindscope.studies.framework.results import CHECKPOINT, Context, Result, with_progress

if TYPE_CHECKING:
    from bindscope.measures.crosscoder import CrosscoderSettings
    from bindscope.runs.directory import Run

ON_PLATEAU = (0, 1 / 3, 2 / 3, 1)  # where along the plateau checkpoints are taken
N_AFTER = 3  # behind it; with the last one, eight
SEEDS = (0, 1)  # of the dictionary: what only one of them has is no finding


def compute_crosscoder(context: Context, settings: CrosscoderSettings | None = None) -> xr.Dataset:
    """What ``measure_line_features`` gives of a few layers, over (layer, seed, feature, step, label)."""
    import torch

    from bindscope.measures.binding.line_features import (
        draw_right_hand_sides,
        measure_line_features,
        read_right_hand_sides,
    )
    from bindscope.measures.crosscoder import CrosscoderSettings

    run, settings = context.run, settings or CrosscoderSettings()
    steps, layers = crosscoder_steps(run), chosen_layers(run.config.model.n_layers)
    if len(steps) < 2:
        raise NotYet("a crosscoder compares checkpoints around the end of a plateau, which this run has not come to")
    drawn = draw_right_hand_sides(run.config.task, context.rng, context.n)  # type: ignore[arg-type]
    read = [read_right_hand_sides(run.checkpoint(step), drawn, layers) for step in steps]
    seeds = [context.seed + seed for seed in SEEDS]
    parts = [
        measure_line_features(torch.stack([streams[layer] for streams in read]), drawn, settings, seeds)
        for layer in with_progress(layers, context.on_progress)
    ]
    dataset = xr.concat(parts, xr.IndexVariable("layer", layers)).assign_coords(step=list(steps), seed=list(SEEDS))
    for name, values in dataset.data_vars.items():
        if values.dtype.kind == "f":
            dataset[name] = values.copy(data=round_bits(values.values.astype(np.float32)))
    hashes = [run.manifest.checkpoints[step].sha256 for step in steps]
    dataset = pack_small(dataset.assign_coords({CHECKPOINT: ("step", hashes)}))
    return dataset.assign_attrs(n=context.n, penalty=settings.penalty, updates=settings.updates)


def crosscoder_steps(run: Run) -> Sequence[int]:
    """Checkpoints along the plateau, the first ones behind it, and the last."""
    return steps_around_plateau(run, ON_PLATEAU, N_AFTER)


def chosen_layers(n_layers: int) -> list[int]:
    """What enters the second, the middle and the last layer: what enters the first is the token alone."""
    return sorted({min(1, n_layers - 1), n_layers // 2, n_layers - 1})


RESULTS = (
    Result("crosscoder", "a crosscoder", compute_crosscoder, n=600, steps=crosscoder_steps, passes=60, on_demand=True),
)

DRAWINGS = (
    Drawing(
        "crosscoder",
        "Features of right-hand sides that checkpoints share, and when they appear",
        ("crosscoder", "trajectory"),
        defer(f"{__package__}.draw", "draw_crosscoder"),
    ),
)
