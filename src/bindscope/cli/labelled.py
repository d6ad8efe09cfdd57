"""Labelled arrays as commands give them away: JSON on the screen, netCDF in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr


def dataset_to_mapping(dataset: xr.Dataset) -> dict[str, Any]:
    """A dataset ready for JSON: ``coordinates``, and for each variable ``dims``, ``values``, ``units``; NaN is null.

    >>> dataset_to_mapping(xr.Dataset({"n": ("depth", [3, 4])}, {"depth": [1, 2]}))["variables"]["n"]["values"]
    [3, 4]
    """
    return {
        "attributes": {str(name): _plain(value) for name, value in dataset.attrs.items()},
        "coordinates": {str(name): _plain(values.values.tolist()) for name, values in dataset.coords.items()},
        "variables": {
            str(name): {
                "dims": list(map(str, variable.dims)),
                "units": str(variable.attrs.get("units", "1")),
                "values": _plain(variable.values.tolist()),
            }
            for name, variable in dataset.data_vars.items()
        },
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if value != value else value  # NaN alone differs from itself
