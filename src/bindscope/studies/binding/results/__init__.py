"""What is measured of a binding run, by name."""

from bindscope.studies.binding.results import learning

RESULTS = (*learning.RESULTS,)

__all__ = ["RESULTS"]
