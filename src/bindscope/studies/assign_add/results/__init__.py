"""What is measured of a run on sums, by name."""

from bindscope.studies.assign_add.results import (
    addition,
    attention,
    learning,
    neurons,
    one_step,
    progress,
    sweeps,
    transplants,
    weights,
)

_PARTS = (learning, sweeps, progress, weights, attention, addition, neurons, transplants, one_step)
RESULTS = tuple(result for part in _PARTS for result in part.RESULTS)

__all__ = ["RESULTS"]
