"""Which saved checkpoints stand for the phases of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bindscope.studies.framework.trajectory import phases_of, trajectory_dataset

if TYPE_CHECKING:
    from bindscope.measures.binding.phases import Phase
    from bindscope.runs.directory import Run


def phase_checkpoints(run: Run, phases: Sequence[Phase]) -> dict[str, int]:
    """For each phase the saved step nearest to its middle, among those inside it; phases without one are left out."""
    chosen = {}
    for phase in phases:
        inside = [step for step in run.steps if phase.first_step <= step <= phase.last_step]
        middle = (phase.first_step + phase.last_step) / 2
        if inside:
            chosen[phase.name] = min(inside, key=lambda step: (abs(step - middle), step))
    if "systematic" in chosen:  # the mechanism is best seen where training left it
        chosen["systematic"] = run.steps[-1]
    return chosen


def phases_of_run(run: Run) -> list[Phase]:
    """The phases in the run's evaluations; none where it has no evaluation."""
    records = [record for record in run.metrics if "watched" in record]
    return phases_of(trajectory_dataset(records, run.manifest.config)) if records else []
