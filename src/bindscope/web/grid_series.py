"""Series of patch grids, read while they grow: which there are, the means of one step, and one pair of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bindscope.questions.grids import GridSeries, read_question
from bindscope.runs.series import Unusable, list_series
from bindscope.web.again import in_python, in_shell
from bindscope.web.asking import answer_body, opened
from bindscope.web.body import Provenance, to_body
from bindscope.web.lab import Lab, LabRun, Missing, NotMeasured
from bindscope.web.page import Parameters, Resource
from bindscope.web.programs import KINDS

if TYPE_CHECKING:
    import xarray as xr

DECIMALS = 4  # of a mean: enough to draw and to read
TITLE = "Patch grids of every pair at every checkpoint"


def list_grids(lab: Lab, run: LabRun) -> dict[str, Any]:
    """The series of a run over (series), and which steps of each are measured over (series, step)."""
    import numpy as np
    import xarray as xr

    found, steps = _known(run), list(run.steps)
    columns = {
        name: ("series", np.array([str(getattr(each.question, name)) for each in found.values()], dtype=object))
        for name in ("grid", "metric", "direction")
    }
    columns["n"] = ("series", np.array([each.question.n for each in found.values()], dtype=int))
    there = [[step in each.steps for step in steps] for each in found.values()]
    measured = np.array(there, dtype=bool).reshape(len(found), len(steps))
    dataset = xr.Dataset(
        {"measured": (("series", "step"), measured), **columns}, {"series": list(found), "step": steps}
    )
    again = {"command": in_shell(run, "grids"), "python": in_python(run, "run.grids()")}
    return to_body(dataset, Provenance(run=run.name), title=TITLE, **again)


def step_grid(lab: Lab, run: LabRun, series: str, step: int) -> dict[str, Any]:
    """Means over the pairs of a series at a step, over (layer, position) or the cells it has."""
    found = _find(run, series)
    dataset = _read(found, lambda: found.summary([step])).isel(step=0, drop=True).round(DECIMALS)
    return _body(run, found, step, dataset, found.question.n, str(dataset.attrs["interval"]))


def pair_grid(lab: Lab, run: LabRun, series: str, step: int, pair: str) -> dict[str, Any]:
    """One pair of a series at a step: every cell of it, with both programs."""
    found = _find(run, series)
    if not (pair.isascii() and pair.isdigit() and int(pair) < found.question.n):
        raise Missing(f"{series}: there are pairs 0 to {found.question.n - 1}.")
    names = {f"pair_{name}": name for name in ("success", found.question.metric)}
    dataset = _read(found, lambda: found.pairs(step, int(pair))).drop_vars("pair", errors="ignore").rename(names)
    base, source = found.programs(int(pair))[:: 1 if found.question.direction == "noising" else -1]
    if found.question.grid == "residual":
        dataset = dataset.assign_coords(token=("position", found.opened.task.show_tokens(base)))
    about = {"program": base.one_line, "source": source.one_line, "pair": int(pair)}
    return _body(run, found, step, dataset.assign_attrs(about), 1, "")


def _body(run: LabRun, found: GridSeries, step: int, dataset: xr.Dataset, n: int, interval: str) -> dict[str, Any]:
    question, note = found.question, str(dataset.attrs["pairs"])
    about = {"step": step, "n": n, "seed": question.seed, "interval": interval, "note": note}
    kept = dataset.assign_attrs({name: value for name, value in dataset.attrs.items() if name != "asked"})
    return answer_body(question, kept, TITLE, run=run, **about)


def _known(run: LabRun) -> dict[str, GridSeries]:
    """The series of a run whose files say what they hold."""
    found = {}
    for name, series in list_series(run.results_folders).items():
        try:
            found[name] = GridSeries(read_question(run.name, series), opened(run), series)
        except Unusable:
            continue
    return found


def _find(run: LabRun, name: str) -> GridSeries:
    known = _known(run)
    if name not in known:
        raise Missing(f"{run.name}: there is no series of patch grids '{name}'.")
    return known[name]


def _read(found: GridSeries, read: Any) -> Any:
    try:
        return read()
    except Unusable as problem:
        how = f"give '{found.question.command()}' again."
        raise NotMeasured(f"{problem} To measure it, {how}") from None


def _each_step(lab: Lab, run: LabRun) -> Iterator[Parameters]:
    shown = set(run.steps)
    for name, found in _known(run).items():
        yield from ({"series": name, "step": str(step)} for step in found.steps if step in shown)


def _no_pair(lab: Lab, run: LabRun) -> Iterator[Parameters]:
    """A static copy has the means alone: there are too many pairs for a file each."""
    return iter(())


GRID_SERIES = (
    Resource("runs/{run}/grid-series.json", list_grids, "Series of patch grids, and how far they are", kinds=KINDS),
    Resource(
        "runs/{run}/grid-series/{series}/{step}.json",
        step_grid,
        "Means of a series of patch grids at a step",
        kinds=KINDS,
        each=_each_step,
    ),
    Resource(
        "runs/{run}/grid-series/{series}/{step}/{pair}.json",
        pair_grid,
        "One pair of a series of patch grids at a step",
        kinds=KINDS,
        each=_no_pair,
    ),
)
