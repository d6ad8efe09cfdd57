"""Measure a run of sums at every kept checkpoint, and those that were measured before only once.

>>> dataset = measure_every_step(context, lambda model: xr.Dataset({"accuracy": …}))   # over (step, …)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.studies.framework.results import CHECKPOINT, Context, NotTestable

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

N_BITS = 9  # of a stored number: three digits, which pack small
PACKED: dict[str, Any] = {"zlib": True, "complevel": 9}


def measure_every_step(context: Context, measure: Callable[[Transformer], xr.Dataset]) -> xr.Dataset:
    """What ``measure`` gives at each checkpoint, over (step, …), with the hash of each step's weights beside it."""
    run = context.run
    if not run.steps:
        raise NotTestable("no checkpoint was kept yet")
    known = {} if context.before is None else _parts_by_checkpoint(context.before)
    hashes = [run.manifest.checkpoints[step].sha256 for step in run.steps]
    parts = []
    for done, (step, sha256) in enumerate(zip(run.steps, hashes), start=1):
        parts.append(known[sha256] if sha256 in known else measure(run.checkpoint(step)))
        if context.on_progress:
            context.on_progress(done, len(run.steps))
    dataset = xr.concat(parts, xr.IndexVariable("step", list(run.steps)), data_vars="all", combine_attrs="drop")
    for variable in dataset.variables.values():
        variable.encoding = {}
    for name in dataset.data_vars:
        dataset[name].encoding = dict(PACKED)
    return dataset.assign_coords({CHECKPOINT: ("step", hashes)})


def untrained_model(context: Context) -> Transformer:
    """A fresh model of the run's own shape and initial scale: what training has to do better than."""
    import torch

    from bindscope.model.transformer import Transformer

    return Transformer(context.run.config.model, torch.Generator().manual_seed(context.seed)).eval()


def small(values: Any) -> np.ndarray:
    """In single precision, which is enough to be kept."""
    return np.asarray(values, np.float32)


def round_bits(values: np.ndarray, n_bits: int = N_BITS) -> np.ndarray:
    """The nearest float32 with only so many bits before and behind the point; missing stays missing.

    >>> round_bits(np.array([0.123456789]))
    array([0.12353516], dtype=float32)
    """
    mantissa, exponent = np.frexp(values.astype(float))
    return np.ldexp(np.round(mantissa * 2**n_bits) / 2**n_bits, exponent).astype(np.float32)


def _parts_by_checkpoint(before: xr.Dataset) -> dict[str, xr.Dataset]:
    """What was kept of each checkpoint; what belongs to no step is measured again."""
    over_steps = before[[name for name in before.data_vars if "step" in before[name].dims]].drop_vars(CHECKPOINT)
    return {
        str(sha256): over_steps.isel(step=place, drop=True) for place, sha256 in enumerate(before[CHECKPOINT].values)
    }
