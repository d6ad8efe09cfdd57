"""Everything about reassignment at one checkpoint: answers, patches of writes and of overwrites, and probes of state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.binding.reassignment.patches import DrawnWrites, draw_write_pairs, measure_writes
from bindscope.measures.binding.reassignment.states import (
    Found,
    StatePrograms,
    draw_state_programs,
    label_states,
    measure_states,
    probe_states,
)
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask

PROBED = 20  # programs that probes are fitted and tested on, for each pair


@dataclass(frozen=True, eq=False)
class DrawnReassignment:
    """What one measurement is made on, and what probes read of a fresh model: the same for every checkpoint."""

    writes: DrawnWrites
    states: StatePrograms
    untrained: Found
    seed: int


def draw_reassignment(task: BindingTask, fresh: Transformer, n: int, seed: int) -> DrawnReassignment:
    """``n`` pairs of each kind; refused where programs assign every variable once. ``fresh`` is an untrained model."""
    if not task.reassign:
        raise BindscopeError(
            "these programs assign every variable once (task.reassign = 0), so there is no reassignment to measure."
        )
    rng = np.random.default_rng(seed)
    writes, states = draw_write_pairs(task, rng, n), draw_state_programs(task, rng, PROBED * n)
    (untrained,) = probe_states(fresh, states, label_states(states.fit))
    return DrawnReassignment(writes, states, untrained, seed)


def measure_reassignment(model: Transformer, drawn: DrawnReassignment) -> xr.Dataset:
    """What ``measure_writes`` and ``measure_states`` give of one checkpoint."""
    writes = measure_writes(model, drawn.writes)
    states = measure_states(model, drawn.states, drawn.untrained, torch.Generator().manual_seed(drawn.seed))
    interval = "95 %: Wilson, of probes normal over programs"
    return xr.merge([writes, states]).assign_attrs({**writes.attrs, **states.attrs, "interval": interval})
