"""The routing circuit in the weights of a run on modular addition, at every kept checkpoint.

>>> weights = library.fill("weights").dataset
>>> weights.equals_to_variable.sel(variable="b")   # how gladly = looks at b in layer 1, over training
>>> weights.identity_margin.sel(step=5401)

Over (step): ``equals_to_variable``, ``equals_to_position``, ``identity_margin`` (variable), ``position_margin`` (position),
``variable_identity`` and ``positions``, ``kind_score`` (query_kind, key_kind); ``qk1`` at the last checkpoint alone.
Controls: ``fresh_identity`` and ``fresh_previous`` of models of the same shape that were never trained (fresh), and
``shuffled_identity`` and ``shuffled_previous`` of the last checkpoint with rows and columns matched at random (shuffle).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.studies.framework.results import CHECKPOINT, Context, NotTestable, Result, every_step

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

N_FRESH = 20
N_SHUFFLES = 200
N_BITS = 12  # of a stored score: better than three digits
PACKED: dict[str, Any] = {"zlib": True, "complevel": 9, "shuffle": True}
OVER_STEPS = (
    "equals_to_variable",
    "equals_to_position",
    "identity_margin",
    "position_margin",
    "variable_identity",
    "positions",
    "kind_score",
)


def compute_weights(context: Context) -> xr.Dataset:
    """Every checkpoint's matrices and margins; those that were measured before are not measured again."""
    from bindscope.measures.arithmetic.circuit import circuit_matrices
    from bindscope.measures.arithmetic.forms import SumForms

    run = context.run
    if not run.steps:
        raise NotTestable("no checkpoint was kept yet")
    task: Any = run.config.task
    known = {} if context.before is None else _parts_by_checkpoint(context.before)
    parts = []
    for done, step in enumerate(run.steps, start=1):
        sha256 = run.manifest.checkpoints[step].sha256
        if sha256 not in known:
            known[sha256] = summarise_matrices(circuit_matrices(SumForms.of(run.checkpoint(step), task), task))
        parts.append(known[sha256])
        if context.on_progress:
            context.on_progress(done, len(run.steps))
    dataset = xr.concat(parts, xr.IndexVariable("step", list(run.steps)), combine_attrs="drop")
    hashes = [run.manifest.checkpoints[step].sha256 for step in run.steps]
    dataset = dataset.assign_coords({CHECKPOINT: ("step", hashes)})
    last = circuit_matrices(SumForms.of(run.checkpoint(run.steps[-1]), task), task)
    return _pack(dataset.assign(qk1=last.qk1, allowed=last.allowed, **_controls(run, last)))


def summarise_matrices(matrices: xr.Dataset) -> xr.Dataset:
    """What is kept of one checkpoint's matrices: the small ones, and a number for each variable, position and kind."""
    from bindscope.measures.arithmetic.circuit import identity_margin, mean_by_kind, position_margin

    variables, places = matrices.query_variable.values, matrices.query_position.values
    scores = {kind: matrices.equals_to.values[matrices.kind.values == kind] for kind in ("variable", "position")}
    kinds = mean_by_kind(matrices.qk1.values, matrices.query_kind.values, matrices.key_kind.values)
    summary = xr.Dataset(
        {
            "equals_to_variable": ("variable", scores["variable"]),
            "equals_to_position": ("position", scores["position"]),
            "identity_margin": ("variable", identity_margin(matrices.variable_identity.values)),
            "position_margin": ("position", position_margin(matrices.positions.values)),
            "variable_identity": matrices.variable_identity,
            "positions": matrices.positions,
            "kind_score": (("from_kind", "to_kind"), kinds.values),
        },
        {
            "variable": variables,
            "position": places,
            "from_kind": kinds.query_kind.values,
            "to_kind": kinds.key_kind.values,
        },
    )
    return summary.astype(np.float32)


def _controls(run: Run, last: xr.Dataset) -> dict[str, Any]:
    import torch

    from bindscope.measures.arithmetic.circuit import (
        circuit_matrices,
        contested_share,
        shuffled_identity,
        shuffled_previous,
    )
    from bindscope.measures.arithmetic.forms import SumForms
    from bindscope.model.transformer import Transformer

    task: Any = run.config.task
    identity, previous = [], []
    for seed in range(N_FRESH):
        model = Transformer(run.config.model, torch.Generator().manual_seed(seed))
        fresh = circuit_matrices(SumForms.of(model, task), task)
        identity.append(float((fresh.variable_identity.values.argmax(1) == np.arange(task.n_variables)).mean()))
        previous.append(contested_share(fresh.positions.values))
    rng = np.random.default_rng(0)
    return {
        "fresh_identity": ("fresh", identity),
        "fresh_previous": ("fresh", previous),
        "shuffled_identity": ("shuffle", shuffled_identity(last.variable_identity.values, rng, N_SHUFFLES)),
        "shuffled_previous": ("shuffle", shuffled_previous(last.positions.values, rng, N_SHUFFLES)),
    }


def _pack(dataset: xr.Dataset) -> xr.Dataset:
    from bindscope.studies.framework.every_step import round_bits

    for name in (*OVER_STEPS, "qk1"):
        dataset[name] = (dataset[name].dims, round_bits(dataset[name].values, N_BITS), {"units": "score"})
    for variable in dataset.data_vars.values():
        variable.encoding = dict(PACKED)
    dataset.attrs = {"title": "routing circuit in the weights"}
    return dataset


def _parts_by_checkpoint(dataset: xr.Dataset) -> dict[str, xr.Dataset]:
    plain = dataset[list(OVER_STEPS)].drop_vars(CHECKPOINT)
    return {str(sha256): plain.isel(step=place, drop=True) for place, sha256 in enumerate(dataset[CHECKPOINT].values)}


RESULTS = (Result("weights", "routing circuit in the weights", compute_weights, steps=every_step, grows=True),)
