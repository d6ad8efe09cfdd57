"""How a run on sums learned: the phases and spikes in its evaluations.

>>> phases, spikes = phases_and_spikes(trajectory_dataset(run.metrics))
>>> [phase.name for phase in phases], len(spikes)
(['addition', 'assignment', 'refinement'], 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bindscope.measures.arithmetic.spikes import Spike, detect_sum_phases, find_spikes

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.measures.phases import Phase

FAMILY = "assign_add"


def phases_and_spikes(dataset: xr.Dataset) -> tuple[list[Phase], list[Spike]]:
    """The phases and the spikes in a trajectory, both with the default criterion."""
    return phases_of_sums(dataset), spikes_of(dataset)


def phases_of_sums(dataset: xr.Dataset) -> list[Phase]:
    """The phases in a trajectory of sums."""
    return detect_sum_phases(dataset.step.values, dataset.pool_accuracy.values, _pools(dataset))


def spikes_of(dataset: xr.Dataset) -> list[Spike]:
    """The spikes in a trajectory; other families than sums have none."""
    if dataset.attrs.get("family", FAMILY) != FAMILY:
        return []
    n = int(dataset.pool_n.min()) if "pool_n" in dataset else None
    return find_spikes(dataset.step.values, dataset.pool_accuracy.values, _pools(dataset), n)


def _pools(dataset: xr.Dataset) -> list[str]:
    return [str(pool) for pool in dataset.pool.values]
