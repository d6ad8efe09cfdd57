"""What is measured of a binding run, by name."""

from bindscope.studies.binding.results import (
    behaviour,
    generalisation,
    grids,
    learning,
    mechanism,
    projections,
    representation,
)

_PARTS = (learning, generalisation, mechanism, grids, representation, behaviour, projections)
RESULTS = tuple(result for part in _PARTS for result in part.RESULTS)

__all__ = ["RESULTS"]
