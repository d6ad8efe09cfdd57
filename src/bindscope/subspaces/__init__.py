"""Where in the residual stream names and values live: directions found, tested causally, and held against controls."""

from bindscope.subspaces.axes import Axes, align_axes, fit_axes
from bindscope.subspaces.cross import cross_swaps
from bindscope.subspaces.find import RANKS, Samples, find_subspace, fit_subspace, sample_stream
from bindscope.subspaces.measure import Search, default_search, measure_subspace
from bindscope.subspaces.positions import QUALITIES, find_columns, label_columns
from bindscope.subspaces.projections import project_over_training
from bindscope.subspaces.rotation import learn_rotation
from bindscope.subspaces.stream import read_stream, swap_stream
from bindscope.subspaces.subspace import Subspace, principal_angles, random_subspace
from bindscope.subspaces.sweep import sweep_subspaces

__all__ = [
    "QUALITIES",
    "RANKS",
    "Axes",
    "Samples",
    "Search",
    "Subspace",
    "align_axes",
    "cross_swaps",
    "default_search",
    "find_columns",
    "find_subspace",
    "fit_axes",
    "fit_subspace",
    "label_columns",
    "learn_rotation",
    "measure_subspace",
    "principal_angles",
    "project_over_training",
    "random_subspace",
    "read_stream",
    "sample_stream",
    "swap_stream",
    "sweep_subspaces",
]
