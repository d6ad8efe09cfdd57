"""The figure of each experiment of study 2."""

from __future__ import annotations

import xarray as xr
from matplotlib.figure import Figure

from bindscope.studies.assign_add.sweeps.draw import draw_sweep
from bindscope.studies.assign_add.sweeps.swept import PAIR_FRACTION, TWO_VARIABLE_FREQUENCY


def draw_pair_fraction(dataset: xr.Dataset) -> Figure:
    return draw_sweep(dataset, PAIR_FRACTION, "How many pairs are enough")


def draw_two_variable_frequency(dataset: xr.Dataset) -> Figure:
    return draw_sweep(dataset, TWO_VARIABLE_FREQUENCY, "How many sums of two variables are enough")
