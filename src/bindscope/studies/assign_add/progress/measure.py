"""The seven progress measures of a run on modular addition, at every saved checkpoint.

>>> library.fill("progress").dataset.attn_l2_equal_to_values.sel(step=5401)

Over (step): the measures by their names, and for those over sequences ``NAME_low`` and ``NAME_high``. The control of the
probe, fitted to variables dealt out again, is ``probe_l1_shuffled``; ``attn_l1_equal_to_operands_all`` is over all splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from bindscope.studies.framework.measuring import hashes_of, parts_of_steps
from bindscope.studies.framework.results import CHECKPOINT, Context, Result, every_step

N_PER_SPLIT = 200


def compute_progress(context: Context) -> xr.Dataset:
    """Measure each checkpoint on the same sequences; those that were measured before are not measured again."""
    from bindscope.measures.arithmetic.forms import SumForms
    from bindscope.measures.arithmetic.progress import BESIDE, MEASURES, draw_probes, label_progress, measure_progress

    run, names = context.run, (*MEASURES, *BESIDE)
    task: Any = run.config.task
    probes = draw_probes(task, context.rng, context.n)
    counts: dict[str, int] = {}

    def measure(step: int) -> list[float]:
        readings = measure_progress(SumForms.of(run.checkpoint(step), task), task, probes)
        counts.update({name: n for name, (_, n) in readings.items()})
        return [readings[name][0] for name in names]

    known = {} if context.before is None else _rows_by_checkpoint(context.before, names)
    rows = parts_of_steps(context, measure, known)
    if not counts:  # every checkpoint was measured before
        measure(run.steps[0])
    dataset = label_progress(run.steps, dict(zip(names, np.array(rows).T, strict=True)), counts)
    dataset = dataset.assign_coords({CHECKPOINT: ("step", hashes_of(run))})
    dataset.attrs |= {"n_per_split": context.n, "seed": context.seed}
    return dataset


def _rows_by_checkpoint(dataset: xr.Dataset, names: Sequence[str]) -> dict[str, list[float]]:
    return {
        str(sha256): [float(dataset[name].values[index]) for name in names]
        for index, sha256 in enumerate(dataset[CHECKPOINT].values)
    }


RESULTS = (
    Result("progress", "seven progress measures at every checkpoint", compute_progress, revision=2, n=N_PER_SPLIT,
           steps=every_step, passes=20, grows=True),
)  # fmt: skip
