"""A model given parts of a later checkpoint, and trained on: how soon does it learn what the later one knows?

Each cell starts from the receiver with a fresh optimizer and sees the same batches at the same rate, so that cells differ by
nothing but the part:

    trained    the part is the donor's, and trained on with everything else
    frozen     the part is the donor's, and stays so
    random     the part is changed at random by as much (in norm), and trained on
    held       the part stays as the receiver has it, while everything else is trained: is it needed?

>>> retrain(receiver, donor, {"L0.QK": parts}, loaders, config, evaluate).left.sel(part="L0.QK", condition="trained")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.training.config import CheckpointPlan, ScheduleConfig, TrainingConfig

if TYPE_CHECKING:
    from torch import Tensor

    from bindscope.interventions.components import Part
    from bindscope.model.transformer import Transformer
    from bindscope.tasks.loading import Loader

CONDITIONS = ("trained", "frozen", "random", "held")
Score = Callable[["Transformer"], float]


def retrain(
    receiver: Transformer,
    donor: Transformer,
    rows: Mapping[str, Sequence[Part]],
    loaders: Mapping[int, Loader],
    config: TrainingConfig,
    score: Score,
    on_cell: Callable[[], None] = lambda: None,
) -> xr.Dataset:
    """``left`` (part, condition, seed): the steps after which ``score`` has reached ``config.stop_at`` at two evaluations
    running, missing where it has not; ``score`` over (…, trained); and both of the receiver as it is, as ``baseline_…``.

    ``loaders`` are the streams of data by their seed, ``config`` is what ``cell_config`` gives.
    """
    from bindscope.interventions.transplant import check_weights

    check_weights(part for parts in rows.values() for part in parts)
    trained = np.arange(0, config.steps + 1, config.evaluate_every)
    curves = np.full((len(rows), len(CONDITIONS), len(loaders), len(trained)), np.nan)
    baseline = np.full((len(loaders), len(trained)), np.nan)
    for column, (seed, loader) in enumerate(loaders.items()):
        baseline[column] = _train_cell(deepcopy(receiver), {}, loader, config, score, len(trained))
        on_cell()
        for row, parts in enumerate(rows.values()):
            for index, condition in enumerate(CONDITIONS):
                model, frozen = _start(receiver, donor, parts, condition, seed)
                curves[row, index, column] = _train_cell(model, frozen, loader, config, score, len(trained))
                on_cell()
    dims = ("part", "condition", "seed", "trained")
    target = float(config.stop_at or 1.0)
    return xr.Dataset(
        {
            "score": (dims, curves, {"units": "fraction"}),
            "left": (dims[:-1], steps_to_reach(curves, trained, target)),
            "baseline_score": (dims[2:], baseline, {"units": "fraction"}),
            "baseline_left": ("seed", steps_to_reach(baseline, trained, target)),
        },
        {"part": list(rows), "condition": list(CONDITIONS), "seed": list(loaders), "trained": trained},
        {"most_steps": config.steps, "every": config.evaluate_every, "target": target, "lr": config.optimizer.lr},
    )


def cell_config(config: TrainingConfig, factor: float, most_steps: int, every: int, target: float) -> TrainingConfig:
    """A run's settings for one cell: its rate at the receiver's step (``factor`` times the base one), which stays."""
    optimizer = replace(config.optimizer, lr=config.optimizer.lr * factor, muon_lr=config.optimizer.muon_lr * factor)
    return replace(
        config, steps=most_steps, epochs=None, optimizer=optimizer, schedule=ScheduleConfig(), evaluate_every=every,
        evaluate_early=False, checkpoints=CheckpointPlan(every=most_steps, per_octave=0), save_every=most_steps,
        stop_at=target, stop_below=None, stop_fitted=None,
    )  # fmt: skip


def steps_to_reach(scores: np.ndarray, trained: np.ndarray, target: float) -> np.ndarray:
    """The first of ``trained`` from which scores [..., trained] reach the target at two evaluations running; else NaN.

    >>> steps_to_reach(np.array([0.1, 0.6, 0.2, 0.7, 0.8]), np.arange(5), 0.5)
    array(3.)
    """
    reached = np.nan_to_num(scores, nan=-1.0) >= target
    running = reached[..., :-1] & reached[..., 1:]
    return np.where(running.any(-1), trained[running.argmax(-1)], np.nan)


def _start(
    receiver: Transformer, donor: Transformer, parts: Sequence[Part], condition: str, seed: int
) -> tuple[Transformer, dict[str, Tensor]]:
    """The model that a cell begins with, and what of it is frozen."""
    import torch

    from bindscope.interventions.transplant import change_at_random, mark_parts, transplant

    frozen = mark_parts(receiver, parts) if condition in ("frozen", "held") else {}
    if condition == "held":
        return deepcopy(receiver), frozen
    if condition == "random":
        return change_at_random(receiver, donor, parts, torch.Generator().manual_seed(seed)), frozen
    return transplant(receiver, donor, parts), frozen


def _train_cell(
    model: Transformer, frozen: Mapping[str, Tensor], loader: Loader, config: TrainingConfig, score: Score, n: int
) -> np.ndarray:
    """The score at each evaluation, [n]; missing after the target was reached, or training has diverged."""
    from bindscope.training.loop import Diverged, train
    from bindscope.training.state import MemoryKeeper

    trainable, kept = {name for name, _ in model.named_parameters()}, MemoryKeeper()
    with suppress(Diverged):  # a cell that diverges has not left the plateau
        train(
            model,
            loader,
            config,
            evaluate=lambda trained: {"watched": {"score": score(trained)}},
            keeper=kept,
            device=next(model.parameters()).device,
            frozen={name: mark for name, mark in frozen.items() if name in trainable},
        )
    scores = [record["watched"]["score"] for record in kept.evaluations]
    return np.array([*scores, *[np.nan] * (n - len(scores))])
