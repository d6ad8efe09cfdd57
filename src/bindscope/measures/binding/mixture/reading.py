"""Where in a model a question is still a pointer, read from a mixture that was measured."""

from __future__ import annotations

import numpy as np
import xarray as xr

QUERY, COLON, END = "query", "colon", "end"
POSITIONS = (QUERY, COLON, END)
POINTERS = ("positional", "lexical")  # accounts that look something up in the base


def pointer_layer(dataset: xr.Dataset) -> int:
    """The last layer that the end still enters as a pointer: looked up by name or position half as often as in its best layer.

    Of a dataset over steps the last one decides.
    """
    last = dataset.isel(step=-1) if "step" in dataset.dims else dataset
    pointed = last.weight.sel(position=END, account=list(POINTERS)).sum("account").values  # [layer]
    return int(np.flatnonzero(pointed >= 0.5 * pointed.max())[-1])
