"""Labelled arrays on disk: netCDF files that anyone can open without Bindscope."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.runs.files import explain_failure, write_atomically

if TYPE_CHECKING:
    import xarray

KEY = "result_key"  # the attribute of a saved dataset that says what it was made from
NAMES = 2  # raised when axes or variables are renamed; a dataset with older names is computed again


def write_result(folder: Path, name: str, result: xarray.Dataset) -> Path:
    """Keep a dataset as ``folder/NAME.nc``, replacing one of that name; the folder is made where it is missing.

    >>> write_result(Path("runs/first/results"), "chain", dataset)
    PosixPath('runs/first/results/chain.nc')
    """
    if not name or Path(name).name != name or name.startswith("."):
        raise BindscopeError(f"result {name!r}: a name without slashes is needed.")
    path = folder / f"{name}.nc"
    with explain_failure(path):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, bytes(result.to_netcdf(engine="h5netcdf")))
    return path


def read_result(path: Path) -> xarray.Dataset:
    """The dataset at ``path``, whole in memory; a damaged file is refused with a sentence."""
    import xarray

    try:
        return xarray.load_dataset(path, engine="h5netcdf")
    except (OSError, ValueError, KeyError, RuntimeError) as problem:
        raise BindscopeError(f"{path}: this result is damaged: {problem}.") from None


def read_part(path: Path, names: Sequence[str] | None, at: Mapping[str, Any]) -> xarray.Dataset:
    """Some variables of the dataset at ``path``, all when left out, at some indices of its axes; nothing else is read."""
    import xarray

    try:
        with xarray.open_dataset(path, engine="h5netcdf") as dataset:
            return (dataset if names is None else dataset[list(names)]).isel(at).load()
    except (OSError, ValueError, KeyError, RuntimeError) as problem:
        raise BindscopeError(f"{path}: this result is damaged: {problem}.") from None


def key_of(content: Any) -> str:
    """The hash of everything that a dataset depends on, as plain values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def is_current(result: xarray.Dataset) -> bool:
    """Whether a dataset has the names of axes and variables that are used now."""
    return bool(result.attrs.get("names") == NAMES)
