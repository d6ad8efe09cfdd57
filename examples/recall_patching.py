"""A patch grid for the task of recall.py, as a result that a claim can read: where does the answer stand in the model?

    bindscope verify recall-small --claims examples/recall.toml --result examples/recall_patching.py:carried \\
        --family examples/recall.py:RecallFamily

Two lists differ in the digit behind the asked letter. The residual stream of the one is patched into the other at one
layer and position; success is that the answer becomes the other digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bindscope.interventions.contrast import Contrast
from bindscope.interventions.grids import position_grid

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.studies.framework.results import Context


def carried(context: Context) -> xr.Dataset:
    """Patching over (layer, position, pair), and ``right`` over (pair): both lists are answered correctly."""
    task: Any = context.run.config.task
    rng, model = context.rng, context.run.checkpoint("last")
    base = task.sample_batch(rng, context.n)
    rows, asked = np.arange(context.n), base.labels["pair"][:, 0] - 1  # which pair of the list is asked
    digit = 2 * asked + 1
    first = len(task.vocabulary) - 11  # ids of the ten digits stand before the bar's
    changed = base.tokens.copy()
    changed[rows, digit] = first + (base.tokens[rows, digit] - first + rng.integers(1, 10, context.n)) % 10
    source = task.to_batch(changed)
    tokens = [torch.as_tensor(batch.tokens) for batch in (base, source)]
    answers = [torch.as_tensor(batch.targets[:, 0]) for batch in (base, source)]
    positions = {
        "digit": digit,
        "next digit": np.where(asked + 1 < task.n_pairs, digit + 2, -1),  # what stands before the digit cannot change
        "bar": np.full(context.n, task.n_positions - 2),
        "asked": np.full(context.n, task.n_positions - 1),
    }
    grid = position_grid(model, Contrast(tokens[0], tokens[1], answers[0], answers[1], task.n_positions - 1), positions)
    with torch.no_grad():
        right = [
            (model(each)[:, -1].argmax(-1) == answer).numpy() for each, answer in zip(tokens, answers, strict=True)
        ]
    return grid.assign(right=("pair", (right[0] & right[1]).astype(float)))
