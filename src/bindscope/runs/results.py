"""Labelled arrays on disk: netCDF files that anyone can open without Bindscope."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.runs.files import check_seal, explain_failure, read_bytes, seal, write_atomically

if TYPE_CHECKING:
    import xarray

KEY = "result_key"  # the attribute of a saved dataset that says what it was made from
MOST_BYTES = 2_000_000_000  # of a dataset that are read into memory
NAMES = 2  # raised when axes or variables are renamed; a dataset with older names is computed again


def write_result(folder: Path, name: str, result: xarray.Dataset) -> Path:
    """Keep a dataset as ``folder/NAME.nc``, replacing one of that name; the folder is made where it is missing.

    >>> write_result(Path("runs/first/results"), "chain", dataset)
    PosixPath('runs/first/results/chain.nc')
    """
    if not name or Path(name).name != name or name.startswith("."):
        raise BindscopeError(f"result {name!r}: a name without slashes is needed.")
    return write_dataset(folder / f"{name}.nc", result)


def write_dataset(path: Path, dataset: xarray.Dataset, encoding: Mapping[Any, Any] | None = None) -> Path:
    """Write netCDF with its own hash behind it, whole or not at all; the folder is made where it is missing."""
    with explain_failure(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, seal(bytes(dataset.to_netcdf(engine="h5netcdf", encoding=encoding))))
    return path


def read_result(path: Path) -> xarray.Dataset:
    """The dataset at ``path``, whole in memory; a damaged file is refused with a sentence."""
    return read_part(path, None, {})


def read_part(path: Path, names: Sequence[str] | None, at: Mapping[str, Any]) -> xarray.Dataset:
    """Some variables of the dataset at ``path``, all when left out, at some indices of its axes; memory holds no others.

    The file is compared with its hash all the same.
    """
    import xarray

    check_seal(read_bytes(path, "this result"), path, "this result")
    try:
        _check_declared(path)
        with xarray.open_dataset(path, engine="h5netcdf", phony_dims="access") as dataset:
            wanted = (dataset if names is None else dataset[list(names)]).isel(at)
            if wanted.nbytes > MOST_BYTES:
                raise BindscopeError(f"it says it holds {wanted.nbytes:,} bytes, and {MOST_BYTES:,} are read at most")
            return wanted.load()
    except Exception as problem:  # a damaged or hostile file can raise anything; none of it is ours
        raise BindscopeError(f"{path}: this result is damaged: {_one_line(problem)}.") from None


def _check_declared(path: Path) -> None:
    """Refuse what would take other files, or more memory than there is, before a byte of it is read.

    A file of a few kilobytes can say that it holds terabytes, and name any file of this machine as a part of itself.
    """
    import h5py

    with h5py.File(path, "r") as file:
        for name in file:
            link, item = file.get(name, getlink=True), None
            if isinstance(link, h5py.HardLink):
                item = file[name]
            if not isinstance(item, h5py.Dataset) or item.is_virtual or item.external:
                raise BindscopeError(f"'{name}' is not an array of its own")
            whole = item.shape if item.ndim < 2 else item.chunks or ()  # what is read at once at the least
            if math.prod(whole or ()) * max(1, item.dtype.itemsize) > MOST_BYTES:
                raise BindscopeError(f"'{name}' says it holds {item.shape}, and {MOST_BYTES:,} bytes are read at most")


def _one_line(problem: Exception) -> str:
    return " ".join(str(problem).split()).rstrip(".") or type(problem).__name__


def is_current(result: xarray.Dataset) -> bool:
    """Whether a dataset has the names of axes and variables that are used now."""
    return bool(result.attrs.get("names") == NAMES)
