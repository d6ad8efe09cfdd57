"""The routing circuit in the weights of a run on modular addition, at every saved checkpoint.

>>> weights = library.fill("weights").dataset
>>> weights.equals_to_variable.sel(variable="b")   # how strongly = attends to b in layer 1, over training
>>> weights.identity_margin.sel(step=5401)

Over (step): ``equals_to_variable``, ``equals_to_position``, ``identity_margin`` (variable), ``position_margin`` (position),
``variable_identity`` and ``positions``, ``kind_score`` (query_kind, key_kind); ``qk1`` at the last checkpoint alone.
Controls: ``fresh_identity`` and ``fresh_previous`` of models of the same shape that were never trained (fresh), and
``shuffled_identity`` and ``shuffled_previous`` of the last checkpoint with rows and columns matched at random (shuffle).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xarray as xr

from bindscope.studies.framework.measuring import PACKED, measure_every_step, round_bits
from bindscope.studies.framework.results import Context, Result, every_step

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

N_BITS = 12  # of a stored score: better than three digits
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
    from bindscope.measures.arithmetic.circuit import circuit_controls, circuit_matrices, summarise_matrices
    from bindscope.measures.arithmetic.forms import SumForms

    run = context.run
    task: Any = run.config.task

    def read_matrices(model: Transformer) -> xr.Dataset:
        return circuit_matrices(SumForms.of(model, task), task)

    dataset = measure_every_step(context, lambda model: summarise_matrices(read_matrices(model)))
    last = read_matrices(run.checkpoint(run.steps[-1]))
    controls = circuit_controls(run.config.model, task, last)
    return _pack(dataset.assign(qk1=last.qk1, allowed=last.allowed, **controls))


def _pack(dataset: xr.Dataset) -> xr.Dataset:
    for name in (*OVER_STEPS, "qk1"):
        dataset[name] = (dataset[name].dims, round_bits(dataset[name].values, N_BITS), {"units": "score"})
    for variable in dataset.data_vars.values():
        variable.encoding = {**PACKED, "shuffle": True}
    dataset.attrs = {"title": "routing circuit in the weights"}
    return dataset


RESULTS = (Result("weights", "routing circuit in the weights", compute_weights, steps=every_step, grows=True),)
