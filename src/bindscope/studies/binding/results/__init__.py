"""What is measured of a binding run, by name."""

from bindscope.studies.binding.results import generalisation, learning

RESULTS = (*learning.RESULTS, *generalisation.RESULTS)

__all__ = ["RESULTS"]
