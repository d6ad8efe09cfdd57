"""Results that are saved with a run: read, or made while a reader waits where that takes seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bindscope.web.again import in_shell
from bindscope.web.lab import LabRun, NotMeasured

if TYPE_CHECKING:
    import xarray as xr

MOST_WORK = 1e11  # multiplications that are done while a reader waits: ten seconds or so


def kept_result(run: LabRun, name: str, command: str = "", *, waits: bool = True) -> xr.Dataset:
    """A result of the run's study; one that takes long, or that no reader ``waits`` for, is refused with what makes it.

    >>> kept_result(lab.find("binding-laptop"), "lens")
    """
    library = run.library
    if name not in library.results:
        raise NotMeasured(f"{run.name}: this is not measured for runs of the family '{run.family}'.")
    found = library.find(name)
    if found is None:
        if not waits or library.estimate_work(name) > MOST_WORK:
            how = command or in_shell(run, "measure", name)
            raise NotMeasured(
                f"{run.name}: this is not measured yet, and that takes a while; run '{how}' once.", [name]
            )
        found = library.fill(name)
    if found.dataset is None:
        raise NotMeasured(f"{run.name}: {found.reason}")
    return found.dataset
