"""What the server sends: labelled arrays with where they come from and how to make them again.

Every panel of the page shows one ``Body``. The page draws it, lists it as a table, and offers it as JSON and CSV without
knowing what it is about, because it says its own names, units and provenance.

>>> body = to_body(dataset, Provenance(run="binding-laptop", step=3700, n=240), title="Residual stream", command="bindscope patch …")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import orjson
import xarray as xr
from pydantic import BaseModel, ConfigDict

Value = float | int | str | bool | None


class Strict(BaseModel):
    """What crosses the wire, with nothing besides what is named."""

    model_config = ConfigDict(extra="forbid")


class Labelled(Strict):
    """One array: the names of its axes, and its values row by row (the last axis runs fastest); null is missing."""

    dims: list[str]
    values: list[Value]
    units: str = ""


class Provenance(Strict):
    """Where numbers come from: what a reader needs to make them again."""

    run: str = ""
    step: int | None = None  # None: several, or none
    n: int | None = None
    seed: int | None = None
    interval: str = ""  # how the interval was made; empty where there is none
    note: str = ""  # what was left out, and why


class Body(Strict):
    """A labelled dataset with its provenance and the ways to make it again."""

    title: str
    sizes: dict[str, int]
    coords: dict[str, Labelled]
    variables: dict[str, Labelled]
    attrs: dict[str, str | int | float] = {}
    provenance: Provenance
    command: str = ""  # on a command line
    python: str = ""  # in Python
    absent: str | None = None  # why there is nothing in it, and what to do
    missing: list[str] | None = None  # results of the run that would give it, or more of it, once they are measured


class Problem(Strict):
    """What went wrong, where, and what to do: one sentence."""

    error: str


def absent_body(run: str, reason: str, missing: Iterable[str] = ()) -> Body:
    """A body with nothing in it but the reason, and which results would fill it."""
    about = Provenance(run=run)
    return Body(
        title="", sizes={}, coords={}, variables={}, provenance=about, absent=reason, missing=list(missing) or None
    )


def to_body(
    dataset: xr.Dataset, provenance: Provenance, *, title: str = "", command: str = "", python: str = ""
) -> dict[str, Any]:
    """A dataset as a ``Body``, with arrays kept as numpy: ``encode`` writes them."""
    read = {
        str(name): value.item() if isinstance(value, np.generic) else value for name, value in dataset.attrs.items()
    }
    plain = {name: value for name, value in read.items() if isinstance(value, str | int | float)}
    return {
        "title": title or str(dataset.attrs.get("title", "")),
        "sizes": {str(name): int(size) for name, size in dataset.sizes.items()},
        "coords": {str(name): _labelled(array) for name, array in dataset.coords.items()},
        "variables": {str(name): _labelled(array) for name, array in dataset.data_vars.items()},
        "attrs": {name: value for name, value in plain.items() if name not in ("config", "result_key")},
        "provenance": provenance.model_dump(),
        "command": command,
        "python": python,
    }


def encode(content: Mapping[str, Any] | BaseModel) -> bytes:
    """JSON; what is not a number becomes null."""
    if isinstance(content, BaseModel):
        content = content.model_dump()
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS, default=_plain)


def _labelled(array: xr.DataArray) -> dict[str, Any]:
    values = np.ascontiguousarray(array.values).ravel()
    if values.dtype == np.float64:
        values = values.astype(np.float32)  # seven digits are enough to draw and to compare
    sent = values if values.dtype.kind in "iufb" else [str(value) for value in values]
    return {"dims": [str(name) for name in array.dims], "values": sent, "units": str(array.attrs.get("units", ""))}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be sent")
