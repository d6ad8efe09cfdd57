"""Everything that is measured of a run over training, side by side, and which of it turns first.

>>> develop(library).turned_at.sel(curve="follows-chain")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bindscope.errors import BindscopeError
from bindscope.studies.framework.curves import gather_curves
from bindscope.studies.framework.trajectory import phases_of
from bindscope.studies.framework.verify import study_or_none

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.studies.framework.results import Library


def develop(library: Library) -> xr.Dataset:
    """The curves of a run whose results are saved (``gather_curves``), with its family and phases in the attributes."""
    found = library.fill("trajectory")
    if found.dataset is None:
        raise BindscopeError(f"{library.name}: {found.reason}")
    family, phases = str(found.dataset.attrs["family"]), phases_of(found.dataset)
    dataset = gather_curves(library, study_or_none(family).curves, phases)
    return dataset.assign_attrs(
        title="development",
        run=library.name,
        family=family,
        phase_names=[phase.name for phase in phases],
        phase_first=[phase.first_step for phase in phases],
        phase_last=[phase.last_step for phase in phases],
    )
