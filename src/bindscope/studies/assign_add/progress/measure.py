"""The seven progress measures of a run on modular addition, at every kept checkpoint.

>>> library.fill("progress").dataset.attn_l2_equal_to_values.sel(step=5401)

Over (step): the measures by their names, and for those over sequences ``NAME_low`` and ``NAME_high``. The control of the
probe, fitted to variables dealt out again, is ``probe_l1_shuffled``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.studies.framework.results import CHECKPOINT, Context, NotTestable, Result, every_step

if TYPE_CHECKING:
    pass

N_PER_POOL = 200


def compute_progress(context: Context) -> xr.Dataset:
    """Measure each checkpoint on the same sequences; those that were measured before are not measured again."""
    from bindscope.measures.arithmetic.forms import SumForms
    from bindscope.measures.arithmetic.progress import CONTROL, MEASURES, draw_probes, measure_progress

    run = context.run
    if not run.steps:
        raise NotTestable("no checkpoint was kept yet")
    names = (*MEASURES, CONTROL)
    task = run.config.task
    probes = draw_probes(task, context.rng, context.n)  # type: ignore[arg-type]
    known = {} if context.before is None else _rows_by_checkpoint(context.before, names)
    rows: list[list[float]] = []
    counts: dict[str, int] = {}
    for done, step in enumerate(run.steps, start=1):
        sha256 = run.manifest.checkpoints[step].sha256
        if sha256 not in known or not counts:
            readings = measure_progress(SumForms.of(run.checkpoint(step), task), task, probes)  # type: ignore[arg-type]
            counts = {name: n for name, (_, n) in readings.items()}
            known[sha256] = [readings[name][0] for name in names]
        rows.append(known[sha256])
        if context.on_progress:
            context.on_progress(done, len(run.steps))
    dataset = label_progress(run.steps, dict(zip(names, np.array(rows).T, strict=True)), counts)
    hashes = [run.manifest.checkpoints[step].sha256 for step in run.steps]
    dataset = dataset.assign_coords({CHECKPOINT: ("step", hashes)})
    dataset.attrs |= {"n_per_pool": context.n, "seed": context.seed}
    return dataset


def label_progress(steps: Sequence[int], shares: dict[str, np.ndarray], counts: dict[str, int]) -> xr.Dataset:
    """Shares [step] by name as a dataset, with Wilson intervals where they are over sequences."""
    from bindscope.measures.arithmetic.progress import WEIGHT_MEASURES
    from bindscope.measures.stats.shares import CONFIDENCE, share_variables

    variables: dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, str]]] = {}
    for name, values in shares.items():
        if name in WEIGHT_MEASURES:
            variables[name] = (("step",), values, {"units": "share"})
        else:
            variables |= share_variables(name, ["step"], np.clip(values * counts[name], 0, counts[name]), counts[name])
    dataset = xr.Dataset(variables, {"step": list(steps)})
    for name, n in counts.items():
        dataset[name].attrs["n"] = n
    dataset.attrs = {
        "title": "progress measures",
        "confidence": CONFIDENCE,
        "interval": "95 % Wilson over sequences; those read off the weights have none",
    }
    return dataset


def _rows_by_checkpoint(dataset: xr.Dataset, names: Sequence[str]) -> dict[str, list[float]]:
    return {
        str(sha256): [float(dataset[name].values[place]) for name in names]
        for place, sha256 in enumerate(dataset[CHECKPOINT].values)
    }


RESULTS = (
    Result("progress", "seven progress measures at every checkpoint", compute_progress, n=N_PER_POOL,
           steps=every_step, passes=20, grows=True),
)  # fmt: skip
