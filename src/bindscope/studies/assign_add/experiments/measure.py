"""What the last checkpoints of an experiment's runs show beyond their records.

Identity scaling: which parts of attention the trained models use. A scaled head has four parts: trained and identity
scores, trained and identity outputs. Each is taken out of one layer, and all nine splits are asked again.

Rows of two variables removed: accuracy over every two-variable sum of the three splits that training never shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray as xr

from bindscope.measures.evaluation import read_answers
from bindscope.measures.identity_paths import scales_of, without_part
from bindscope.model.transformer import Transformer
from bindscope.runs.directory import Run
from bindscope.studies.framework.experiments import Cell
from bindscope.studies.framework.measuring import measure_cells
from bindscope.tasks.assign_add import SPLIT_NAMES, AssignAddTask

PARTS = ("identity scores", "identity outputs", "trained scores", "trained outputs")
PATH_OF = {"identity scores": "identity_qk", "identity outputs": "identity_vo"}
N_SUMS = 500  # of each split
SEED = 0
NEW_TWO_VARIABLE = ("2add", "2var1", "2var2")  # the authors' test of two-variable sums: the union of these


def measure_identity_sums(
    runs: Mapping[Cell, Run], on_progress: Callable[[int, int], None] | None = None
) -> xr.Dataset:
    """What the last checkpoint of each run with identity-scaling terms makes of them, over (variant, seed).

    ``whole_accuracy`` is the mean of nine splits, ``accuracy_without`` (…, layer, part) the same with a part taken out of
    one layer, NaN where the model has no such part; ``scaled_a`` and ``scaled_b`` (…, layer, head) as in
    ``measures.identity_paths``.
    """
    scaled = {cell: run for cell, run in runs.items() if cell.config.model.identity_qk or cell.config.model.identity_vo}

    def measure_run(run: Run) -> xr.Dataset:
        splits = run.config.task.sample_evaluation(np.random.default_rng(SEED), N_SUMS)
        return _measure(run.checkpoint("last"), splits)

    return measure_cells(scaled, measure_run, on_progress)


def measure_new_two_variable_sums(
    runs: Mapping[Cell, Run], on_progress: Callable[[int, int], None] | None = None
) -> xr.Dataset:
    """Over (variant, seed): ``new_accuracy``, the fraction of all sums in the union of 2add, 2var1 and 2var2 that the last
    checkpoint answers correctly, each sum asked once; ``new_weight`` (split) is what each split has in the union.
    """

    def measure_run(run: Run) -> xr.Dataset:
        task: Any = run.config.task
        return count_new_sums(run.checkpoint("last"), task)

    dataset = measure_cells(runs, measure_run, on_progress)
    task: Any = next(iter(runs.values())).config.task
    n = np.array([task.count_split(split) if split in NEW_TWO_VARIABLE else 0 for split in SPLIT_NAMES])
    return dataset.assign(new_weight=("split", n / n.sum())).assign_coords(split=list(SPLIT_NAMES))


def count_new_sums(model: Transformer, task: AssignAddTask) -> xr.Dataset:
    """``new_accuracy`` and ``new_n`` of one model."""
    rng = np.random.default_rng(SEED)
    batches = [task.list_split(rng, split) for split in NEW_TWO_VARIABLE]
    right = np.concatenate([read_answers(model, batch).argmax(1) == batch.targets[:, 0] for batch in batches])
    return xr.Dataset({"new_accuracy": float(right.mean()), "new_n": len(right)})


def _measure(model: Transformer, splits: Mapping[str, Any]) -> xr.Dataset:
    config = model.config
    without = np.full((config.n_layers, len(PARTS)), np.nan)
    for index, part in enumerate(PARTS):
        if part in PATH_OF and not getattr(config, PATH_OF[part]):
            continue
        for layer in range(config.n_layers):
            with without_part(model, part, [(layer, head) for head in range(config.n_heads)]):
                without[layer, index] = _mean_accuracy(model, splits)
    return xr.Dataset(
        {
            "whole_accuracy": ((), _mean_accuracy(model, splits)),
            "accuracy_without": (("layer", "part"), without),
        },
        {"layer": range(config.n_layers), "part": list(PARTS)},
    ).merge(scales_of(model))


def _mean_accuracy(model: Transformer, splits: Mapping[str, Any]) -> float:
    fractions = [(read_answers(model, batch).argmax(1) == batch.targets[:, 0]).mean() for batch in splits.values()]
    return float(np.mean(fractions))
