"""What is measured of a binding run, by name."""

from bindscope.studies.binding.results import generalisation, grids, learning, mechanism, representation

RESULTS = (*learning.RESULTS, *generalisation.RESULTS, *mechanism.RESULTS, *grids.RESULTS, *representation.RESULTS)

__all__ = ["RESULTS"]
