"""The eleven claims of "Assign and Add" (arXiv 2605.31497) as data."""

from bindscope.studies.assign_add.claims import (
    addition,
    attention,
    learning,
    neurons,
    one_step,
    sweeps,
    transplants,
    weights,
)
from bindscope.studies.assign_add.results import RESULTS
from bindscope.studies.claims import Study

_PARTS = (learning, sweeps, attention, addition, neurons, weights, transplants, one_step)
_CLAIMS = [claim for part in _PARTS for claim in part.CLAIMS]
STUDY = Study(
    family="assign_add",
    title="Assign and add: variables in modular sums",
    claims=tuple(sorted(_CLAIMS, key=lambda claim: int(claim.id.removeprefix("AA")))),
    results=RESULTS,
)

__all__ = ["STUDY"]
