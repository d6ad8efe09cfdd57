"""What is measured of a binding run, by name."""

from bindscope.studies.binding.results import behaviour, generalisation, learning, mechanism, representation

RESULTS = (*learning.RESULTS, *generalisation.RESULTS, *mechanism.RESULTS, *representation.RESULTS, *behaviour.RESULTS)

__all__ = ["RESULTS"]
