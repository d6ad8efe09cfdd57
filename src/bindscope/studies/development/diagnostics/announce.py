"""Which number leaves its range before a run begins to follow chains: the diagnostics, the coefficient, and the loss itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.measures.diagnostics.announce import announce, find_departure
from bindscope.studies.development.diagnostics.measure import HEADLINES, read_headline
from bindscope.studies.framework.curves import NotMade, over_steps, plateau_of
from bindscope.studies.framework.results import NotTestable
from bindscope.studies.framework.trajectory import phases_of

if TYPE_CHECKING:
    from bindscope.studies.framework.results import Library, OnProgress

ANSWERS = "follows_chain"
NEEDED = ("trajectory", "diagnostics")
ALSO = ("coefficient",)  # read where it is saved


def find_announcements(library: Library, on_progress: OnProgress | None = None) -> xr.Dataset:
    """Over (number): ``departs``, the step at which it leaves its range, ``lead``, how much earlier that is than the answers,
    ``announces``, and ``base_rate``, how often a number that only fluctuates would have announced it;
    ``fires_early``, whether it departs by the same rule inside the plateau's first half, where nothing follows.
    """
    datasets: dict[str, xr.Dataset] = {}
    for name in NEEDED:
        filled = library.fill(name, on_progress)
        if filled.dataset is None:
            raise BindscopeError(f"{library.name}: {filled.reason}")
        datasets[name] = filled.dataset
        find_end(datasets["trajectory"])  # refused before anything is measured
    for name in ALSO:
        found = library.find(name) if name in library.results else None
        if found is not None and found.dataset is not None:
            datasets[name] = found.dataset
    return judge_announcements(datasets).assign_attrs(run=library.name)


def find_end(trajectory: xr.Dataset) -> tuple[tuple[int, int], int]:
    """The plateau of a run on programs, and the step at which its answers leave their range."""
    if ANSWERS not in trajectory:
        raise NotTestable("the end of the plateau is read off programs that mislead, and this run is on other examples")
    plateau = plateau_of(phases_of(trajectory))
    if plateau is None:
        raise NotTestable("the run has no phase before its last one, so there is no plateau to announce the end of")
    answers = find_departure(trajectory.step.values, trajectory[ANSWERS].values, plateau)
    if answers.step is None:
        raise NotTestable("the answers never leave the range they have on the plateau")
    return plateau, answers.step


def judge_announcements(datasets: dict[str, xr.Dataset]) -> xr.Dataset:
    """The same of results by name."""
    plateau, answers_depart = find_end(datasets["trajectory"])
    names, rows = [], []
    for name, curve in read_numbers(datasets):
        try:
            found = announce(curve.step.values, curve.value.values, plateau, answers_depart)
        except BindscopeError as problem:  # too few checkpoints on the plateau
            raise NotTestable(str(problem)) from None
        departs, lead = (np.nan if each is None else float(each) for each in (found.departure.step, found.lead))
        early = np.nan if found.fires_early is None else float(found.fires_early)
        names.append(name)
        rows.append(
            (departs, lead, float(found.announces), found.base_rate, found.departure.n_range, found.n_before, early)
        )
    columns = np.array(rows, dtype=float).T
    keys = ("departs", "lead", "announces", "base_rate", "n_range", "n_before", "fires_early")
    return xr.Dataset(
        {key: ("number", column) for key, column in zip(keys, columns, strict=True)},
        {"number": names},
        {"answers_depart": answers_depart, "plateau": list(plateau)},
    )


def read_numbers(datasets: dict[str, xr.Dataset]) -> Iterator[tuple[str, xr.Dataset]]:
    """Every number that might announce, by its title, over the steps at which diagnostics were measured."""
    steps = datasets["diagnostics"].step.values
    for name, (title, _) in HEADLINES.items():
        try:
            yield title, read_headline(datasets["diagnostics"], name)
        except NotMade:
            continue
    if "coefficient" in datasets:
        yield "local learning coefficient", over_steps(datasets["coefficient"].coefficient)
    loss = datasets["trajectory"].split_loss.isel(split=0, drop=True)
    yield "evaluation loss", over_steps(loss.sel(step=[step for step in steps if step in loss.step]))
