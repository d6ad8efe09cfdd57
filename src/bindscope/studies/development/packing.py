"""Small files of many small arrays."""

from __future__ import annotations

import xarray as xr

from bindscope.studies.framework.measuring import PACKED

LARGE = 1000  # numbers; a smaller array takes less room as it is than what describes its compression


def pack_small(dataset: xr.Dataset) -> xr.Dataset:
    """The same dataset, of which only large arrays are compressed when it is written."""
    for variable in dataset.variables.values():
        variable.encoding = {}
    for name in dataset.data_vars:
        if dataset[name].size > LARGE:
            dataset[name].encoding = {**PACKED, "shuffle": True}
    return dataset
