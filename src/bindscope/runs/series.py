"""A series: a result too large for one file, in a folder with a netCDF file for each checkpoint.

    results/grid-series/residual-n1000-seed0/step_00001000.nc

It can be read while it grows and is never read whole: of each file a reader takes the variables it asks for, of long ones
some rows. Files are written as all results are, so a kill leaves whole files alone; each says by its *key* what it was
made from. A file of another key, or a damaged one, is named and never used.

>>> series = Series(run.path / "results" / "grid-series" / "residual-n1000-seed0")
>>> series.read(1000, key, ["success", "n"])
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.runs.results import KEY, NAMES, is_current, read_part, write_result

if TYPE_CHECKING:
    import xarray as xr

FOLDER = "grid-series"  # inside a folder of results: one folder for each series
CELLS_A_CHUNK = 2**14  # of a stored array: what is unpacked to read a single row
ROWS_AT_ONCE = 1024  # when a file is read through
STEP_FILE = re.compile(r"step_(\d+)\.nc")


class Unusable(BindscopeError):
    """A file of a series that is not there, damaged, or made from something else."""


@dataclass(frozen=True)
class Series:
    """New files are written to ``folder``; those of ``also_in`` are only read."""

    folder: Path
    also_in: tuple[Path, ...] = ()

    @property
    def steps(self) -> tuple[int, ...]:
        """The checkpoints that have a file."""
        folders = (folder for folder in (self.folder, *self.also_in) if folder.is_dir())
        names = (STEP_FILE.fullmatch(path.name) for folder in folders for path in folder.iterdir())
        return tuple(sorted({int(name[1]) for name in names if name}))

    def path(self, step: int) -> Path:
        """The file of a checkpoint, or where it will be."""
        name = f"step_{step:08d}.nc"
        known = [folder / name for folder in (self.folder, *self.also_in) if (folder / name).is_file()]
        return known[0] if known else self.folder / name

    def write(self, step: int, key: str, dataset: xr.Dataset, rows: str) -> Path:
        """Keep what was measured of a checkpoint; arrays over ``rows`` are packed so that single ones can be read."""
        stored = dataset.copy()
        for name in stored.variables:
            stored[name].encoding = dict(stored[name].encoding)
        for values in (stored[name] for name in stored.data_vars if rows in stored[name].dims):
            cells = [size for dim, size in values.sizes.items() if dim != rows]
            n_rows = max(1, min(values.sizes[rows], CELLS_A_CHUNK // max(1, math.prod(cells))))
            values.encoding |= {"chunksizes": (n_rows, *cells)}
        for values in (stored[name] for name in stored.data_vars if stored[name].ndim):
            values.encoding |= {"zlib": True, "complevel": 4, "shuffle": True}
        stored.attrs = {**dataset.attrs, KEY: key, "names": NAMES, "step": step}
        return write_result(self.folder, f"step_{step:08d}", stored)

    def read(self, step: int, key: str, names: Sequence[str] | None = None, **at: Any) -> xr.Dataset:
        """Some variables of a checkpoint, all when left out, at some indices of its axes: ``pair=7``."""
        path = self.path(step)
        if not path.is_file():
            raise Unusable(f"{path}: step {step} is not measured yet.")
        try:
            found = read_part(path, names, at)
        except BindscopeError as problem:
            raise Unusable(str(problem)) from None
        if found.attrs.get(KEY) != key or not is_current(found):
            raise Unusable(f"{path}: was made from other weights, settings or definitions.")
        return found

    def check(self, step: int, key: str, names: Sequence[str], rows: str, n_rows: int) -> None:
        """Refuse a file that cannot be used whole; it is read through, some rows at a time."""
        for start in range(0, n_rows, ROWS_AT_ONCE):
            found = self.read(step, key, None, **{rows: slice(start, start + ROWS_AT_ONCE)})
            missing = sorted({*names} - {*map(str, found.data_vars)})
            if missing:
                raise Unusable(f"{self.path(step)}: this result is damaged: it has no {', '.join(missing)}.")


def series_of(folders: Sequence[Path], name: str) -> Series:
    """The series of this name in folders of results, the first of which is written to."""
    first, *others = (folder / FOLDER / name for folder in folders)
    return Series(first, tuple(others))


def list_series(folders: Sequence[Path]) -> Mapping[str, Series]:
    """The series in folders of results, by name."""
    found = (path for folder in folders if (folder / FOLDER).is_dir() for path in (folder / FOLDER).iterdir())
    return {name: series_of(folders, name) for name in sorted({path.name for path in found if path.is_dir()})}
