"""How a run on sums learned: the phases and spikes in its evaluations.

>>> phases, spikes = phases_and_spikes(trajectory_dataset(run.metrics))
>>> [phase.name for phase in phases], len(spikes)
(['addition', 'assignment', 'refinement'], 2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bindscope.measures.arithmetic.spikes import RESTRICTED, Spike, detect_sum_phases, find_spikes

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.measures.binding.phases import Phase

FAMILY = "assign_add"
FIRST_SPIKE = ("1tr", "1add", "2tr", "2add")  # every pool with variables where training shows them


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


def published_spikes(spikes: Sequence[Spike]) -> tuple[Spike | None, Spike | None]:
    """The two spikes that the paper tells of: the first to lift every pool with variables in trained places, and the
    first after it that lifts every pool with variables in places that training never shows, and no other.
    """
    first = next((spike for spike in spikes if set(FIRST_SPIKE) <= set(spike.pools)), None)
    later = [spike for spike in spikes if first is not None and spike.number > first.number]
    return first, next((spike for spike in later if set(spike.pools) == set(RESTRICTED)), None)


def _pools(dataset: xr.Dataset) -> list[str]:
    return [str(pool) for pool in dataset.pool.values]
