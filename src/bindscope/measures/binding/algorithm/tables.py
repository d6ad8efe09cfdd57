"""Readings of several checkpoints as one labelled dataset: a row for each arrow, each hop and each depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from bindscope.measures.binding.algorithm.patches import WAYS
from bindscope.measures.binding.algorithm.reading import Reading


def tabulate_readings(readings: Mapping[int, tuple[Reading, ...]]) -> xr.Dataset:
    """``strength`` over (arrow), a way's fraction over (hop) and ``accuracy`` over (reading), each with its step and depth.

    >>> tabulate_readings({3700: read_algorithm(dataset)}).sel(reading=0).algorithm
    """
    each = [(step, reading) for step, found in readings.items() for reading in found]
    arrows = [(step, reading.depth, arrow) for step, reading in each for arrow in reading.arrows]
    hops = [(step, reading.depth, hop) for step, reading in each for hop in reading.hops]
    coordinates: dict[str, Any] = {
        "reading_step": ("reading", [step for step, _ in each]),
        "reading_depth": ("reading", [reading.depth for _, reading in each]),
        "algorithm": ("reading", [reading.algorithm for _, reading in each]),
        "arrow_step": ("arrow", [step for step, *_ in arrows]),
        "arrow_depth": ("arrow", [depth for _, depth, _ in arrows]),
        "what": ("arrow", [arrow.what for *_, arrow in arrows]),
        "source": ("arrow", [arrow.source for *_, arrow in arrows]),
        "targets": ("arrow", [" + ".join(arrow.targets) for *_, arrow in arrows]),
        "first_layer": ("arrow", [arrow.first_layer for *_, arrow in arrows]),
        "last_layer": ("arrow", [arrow.last_layer for *_, arrow in arrows]),
        "hop_step": ("hop", [step for step, *_ in hops]),
        "hop_depth": ("hop", [depth for _, depth, _ in hops]),
        "reference": ("hop", [hop.reference for *_, hop in hops]),
        "way": ("hop", [hop.way for *_, hop in hops]),
        "n_pairs": ("hop", [hop.n for *_, hop in hops]),
    }
    fraction = {"units": "fraction"}
    variables: dict[str, Any] = {
        "accuracy": ("reading", np.array([reading.accuracy for _, reading in each], float), fraction),
        "strength": ("arrow", np.array([arrow.strength for *_, arrow in arrows], float), fraction),
    }
    for way in WAYS:
        variables[f"by_{way}"] = ("hop", np.array([hop.fractions[way] for *_, hop in hops], float), fraction)
    return xr.Dataset(variables, coordinates)
