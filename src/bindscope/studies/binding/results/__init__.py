"""What is measured of a binding run, by name."""

from bindscope.studies.binding.results import generalisation, learning, mechanism, projections, representation

RESULTS = (
    *learning.RESULTS,
    *generalisation.RESULTS,
    *mechanism.RESULTS,
    *representation.RESULTS,
    *projections.RESULTS,
)

__all__ = ["RESULTS"]
