"""How a run on modular addition learned: the phases and spikes in its evaluations.

>>> phases, spikes = phases_and_spikes(trajectory_dataset(run.metrics, run.manifest.config))
>>> [phase.name for phase in phases], len(spikes)
(['addition', 'assignment', 'refinement'], 2)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.families import EventTable
from bindscope.measures.arithmetic.spikes import RESTRICTED, Spike, SpikeCriterion, detect_sum_phases, find_spikes

if TYPE_CHECKING:
    from bindscope.measures.phases import Phase

FIRST_SPIKE = ("1tr", "1add", "2tr", "2add")  # every split with variables where training shows them


def phases_and_spikes(dataset: xr.Dataset) -> tuple[list[Phase], list[Spike]]:
    """The phases and the spikes in a trajectory, both with the default criterion."""
    return phases_of_sums(dataset), spikes_of(dataset)


def phases_of_sums(dataset: xr.Dataset) -> list[Phase]:
    """The phases in a trajectory of sums."""
    return detect_sum_phases(dataset.step.values, dataset.split_accuracy.values, _splits(dataset))


def spikes_of(dataset: xr.Dataset) -> list[Spike]:
    """The spikes in a trajectory of sums."""
    n = int(dataset.split_n.min()) if "split_n" in dataset else None
    return find_spikes(dataset.step.values, dataset.split_accuracy.values, _splits(dataset), n)


def list_spikes(spikes: Sequence[Spike]) -> list[EventTable]:
    """Spikes as a table with what makes one; none without spikes."""
    rows = tuple(
        (
            str(spike.number),
            f"{spike.before_step:,}",
            f"{spike.after_step:,}",
            f"{spike.size:.4f}",
            " ".join(spike.splits),
        )
        for spike in spikes
    )
    head = ("spike", "from step", "to step", "largest rise", "splits that rose")
    return [EventTable(head, rows, (0, 1, 2, 3), {"spike": SpikeCriterion().describe()})] if rows else []


def half_variables(
    evaluations: Sequence[Mapping[str, Any]], splits: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables and coordinates of a trajectory: held-out pairs apart by whether training shows their swap."""
    halves = ("swap_seen", "both_held")
    accuracy = np.array(
        [[[e[split].get(half, {}).get("accuracy") for half in halves] for split in splits] for e in evaluations],
        dtype=float,
    )  # [step, split, half]
    return {"half_accuracy": (("step", "split", "half"), accuracy)}, {"half": list(halves)}


def published_spikes(spikes: Sequence[Spike]) -> tuple[Spike | None, Spike | None]:
    """The two spikes that the paper tells of: the first to lift every split with variables in trained positions, and the
    first after it that lifts every split with variables in positions that training never shows, and no other.
    """
    first = next((spike for spike in spikes if set(FIRST_SPIKE) <= set(spike.splits)), None)
    later = [spike for spike in spikes if first is not None and spike.number > first.number]
    return first, next((spike for spike in later if set(spike.splits) == set(RESTRICTED)), None)


def _splits(dataset: xr.Dataset) -> list[str]:
    return [str(split) for split in dataset.split.values]
