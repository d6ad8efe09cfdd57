"""What verdicts rest on: every run and experiment with how much of it was trained, what the rest costs and would settle.

>>> [(item.name, item.n_trained, item.n_planned) for item in list_evidence(Path("runs"))]
[('seeds-neutral', 6, 6), ('seeds-deep', 1, 3), …]
>>> for report in train_evidence(list_evidence(Path("runs")), Path("runs"), hours=8): print(report)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.runs.cluster import ONE_PROCESSOR, PerRun
from bindscope.runs.placement import Device
from bindscope.studies.framework.claims import Study, Wanted
from bindscope.studies.framework.experiments import (
    SHIPPED_DATASETS,
    SHIPPED_RUNS,
    Cell,
    Experiment,
    all_experiments,
    experiment_dataset,
    is_of_present_preset,
    load_experiment_dataset,
    plan_cells,
    save_experiment_dataset,
    train_cells,
)
from bindscope.studies.framework.verify import all_studies

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.directory import Run

State = Literal["complete", "in part", "open"]


@dataclass(frozen=True)
class Item:
    """One run or experiment behind verdicts, and what is left to train of it."""

    wanted: Wanted
    experiment: Experiment | None  # None for a run of a preset
    claims: tuple[str, ...]  # that read it
    cells: tuple[Cell, ...]
    left: tuple[Cell, ...]  # of the cells, those that nobody has trained
    unsaved: bool = False  # a run has ended here that the dataset made here lacks

    @property
    def name(self) -> str:
        return self.wanted.name

    @property
    def kind(self) -> str:
        return "run" if self.experiment is None else "experiment"

    @property
    def n_planned(self) -> int:
        return len(self.cells)

    @property
    def n_trained(self) -> int:
        return len(self.cells) - len(self.left)

    @property
    def seconds_left(self) -> float:
        return sum(cell.seconds for cell in self.left)

    def directory(self, runs_directory: Path) -> Path:
        """Where its runs are saved."""
        return runs_directory if self.experiment is None else runs_directory / f"experiment-{self.name}"

    @property
    def state(self) -> State:
        return "complete" if not self.left else "in part" if self.n_trained else "open"


def list_evidence(runs_directory: Path, names: Sequence[str] = ()) -> list[Item]:
    """Everything behind the verdicts of all studies, what would change them most first; or what is named."""
    wanted = {each.name: (each, study) for study in all_studies() for each in study.evidence}
    for name in names:
        if name not in wanted:
            raise BindscopeError(f"no verdict rests on '{name}'.{suggest_nearest(name, wanted)}")
    chosen = [pair for name, pair in wanted.items() if not names or name in names]
    return [_find_item(*pair, runs_directory) for pair in sorted(chosen, key=lambda pair: pair[0].order)]


def train_evidence(
    items: Sequence[Item],
    runs_directory: Path,
    jobs: int = 1,
    hours: float | None = None,
    cluster: str | None = None,
    device: Device = "cpu",
    per_run: PerRun = ONE_PROCESSOR,
    say: Callable[[str], None] = print,
) -> Iterator[tuple[Item, Run]]:
    """Train what is left, in order, and yield each run as it ends with its item; an experiment's
    dataset is made again after its runs.

    With ``hours``, nothing is begun that would not end in time at its estimated cost, and what is left out is said. A
    run that takes longer than estimated is said to while it trains.
    """
    deadline = None if hours is None else time.monotonic() + 3600 * hours
    for item in items:
        if not item.left and not item.unsaved:
            continue
        cells = item.left[: _count_affordable(item.left, jobs, deadline)]
        if len(cells) < len(item.left):
            say(f"{item.name}: {len(item.left) - len(cells)} of {len(item.left)} runs are left for another time.")
        with _Overrun(cells, len(cells) if cluster else jobs, say) as watch:
            for cell, run in train_cells(cells, item.directory(runs_directory), jobs, cluster, device, per_run):
                watch.end(cell)
                yield item, run
        if item.experiment is not None and (cells or item.unsaved):
            make_dataset(item.experiment, item.directory(runs_directory))


def make_dataset(experiment: Experiment, directory: Path) -> Path:
    """The dataset of all its runs that have ended here, with the shipped one's other runs."""
    runs = {cell: run for cell in plan_cells(experiment) if (run := _ended_run(cell, directory)) is not None}
    dataset = experiment_dataset(experiment, runs)
    shipped = SHIPPED_DATASETS / f"{experiment.name}.nc"
    if shipped.is_file() and is_of_present_preset(other := load_experiment_dataset(shipped), experiment):
        dataset = join_datasets(dataset, other)
    return save_experiment_dataset(dataset, directory / f"{experiment.name}.nc")


def join_datasets(own: xr.Dataset, other: xr.Dataset) -> xr.Dataset:
    """The cells of both datasets of one experiment; where both have one, the first's. Other settings are not mixed in."""
    import json

    settings = ("preset", "common_changes", "sweeps")
    if any(own.attrs.get(name, "") != other.attrs.get(name, "") for name in settings):
        return own
    changes, others = (json.loads(dataset.attrs["changes"]) for dataset in (own, other))
    same = [name for name in map(str, other.variant.values) if changes.get(name, others[name]) == others[name]]
    order = [*map(str, own.variant.values), *(name for name in same if name not in own.variant.values)]
    joined = _untexted(own).combine_first(_without_cells(_untexted(other.sel(variant=same)), own)).sel(variant=order)
    for name, variable in joined.data_vars.items():
        if variable.dtype == object:
            joined[name] = variable.fillna("").astype(str)
    for attribute in ("changes", "meanings"):
        first, second = (json.loads(dataset.attrs[attribute]) for dataset in (own, other))
        joined.attrs[attribute] = json.dumps({**{name: second[name] for name in same}, **first})
    joined.attrs = {**own.attrs, **joined.attrs, "steps": max(own.attrs["steps"], other.attrs["steps"])}
    return joined


def _find_item(wanted: Wanted, study: Study, runs_directory: Path) -> Item:
    experiment = all_experiments().get(wanted.name)
    if experiment is None:
        return _find_run(wanted, study, runs_directory)
    directory = runs_directory / f"experiment-{experiment.name}"
    cells = tuple(plan_cells(experiment, full=wanted.full))
    here, shipped = (
        _cells_of_dataset(path / f"{experiment.name}.nc", experiment) for path in (directory, SHIPPED_DATASETS)
    )
    ended = {cell for cell in cells if not cell.shipped and _ended_run(cell, directory) is not None}
    there = {cell for cell in cells if cell.shipped or (cell.variant, cell.seed) in here | shipped}
    left = tuple(cell for cell in cells if cell not in ended | there)
    unsaved = any((cell.variant, cell.seed) not in here for cell in ended)
    return Item(wanted, experiment, study.claims_on(experiment.name), cells, left, unsaved)


def _find_run(wanted: Wanted, study: Study, runs_directory: Path) -> Item:
    from bindscope.studies.framework.costs import MEASURED
    from bindscope.studies.framework.presets import find_preset

    config = find_preset(wanted.name).config
    is_shipped = (SHIPPED_RUNS / wanted.name).is_dir()
    cell = Cell("preset", config.seed, config, shipped=is_shipped, seconds=MEASURED[wanted.name].seconds)
    trained = is_shipped or _ended_run(cell, runs_directory) is not None
    return Item(wanted, None, study.claims_on_runs(), (cell,), () if trained else (cell,))


def _cells_of_dataset(path: Path, experiment: Experiment) -> set[tuple[str, int]]:
    """The (variant, seed) that a dataset holds, of variants with the experiment's present settings."""
    import json

    if not path.is_file():
        return set()
    dataset = load_experiment_dataset(path)
    planned = {variant.name: json.loads(json.dumps(dict(variant.changes))) for variant in experiment.variants}
    changes = json.loads(dataset.attrs["changes"])
    common = json.loads(dataset.attrs["common_changes"]) == json.loads(json.dumps(dict(experiment.changes)))
    same = dataset.attrs["preset"] == experiment.preset and is_of_present_preset(dataset, experiment)
    if not (same and common):
        return set()
    ends = dataset.last_step.transpose("variant", "seed")
    cells = [
        (str(ends.variant.values[i]), int(ends.seed.values[j])) for i, j in zip(*np.nonzero(np.isfinite(ends.values)))
    ]
    return {cell for cell in cells if planned.get(cell[0]) == changes[cell[0]]}


def _ended_run(cell: Cell, directory: Path) -> Run | None:
    """The run of a cell, if it was trained to its end with these settings."""
    from bindscope.runs.directory import Run
    from bindscope.runs.sweep import ENDED

    path = cell.path_in(directory)
    if not (path / "manifest.json").is_file():
        return None
    run = Run.open(path)
    return run if cell.shipped or (run.config == cell.config and run.status in ENDED) else None


def _count_affordable(cells: Sequence[Cell], jobs: int, deadline: float | None) -> int:
    """How many of the first runs end before the deadline, so many at a time, by what each takes."""
    if deadline is None:
        return len(cells)
    ends = np.cumsum([max(cell.seconds for cell in cells[i : i + jobs]) for i in range(0, len(cells), jobs)])
    return int((ends <= deadline - time.monotonic()).sum()) * jobs


def _without_cells(dataset: xr.Dataset, own: xr.Dataset) -> xr.Dataset:
    """The same without the runs that ``own`` has: a run is taken whole from one of both."""
    there = own.last_step.notnull().reindex(variant=dataset.variant, seed=dataset.seed, fill_value=False)
    of_cells = [name for name, variable in dataset.data_vars.items() if {"variant", "seed"} <= set(variable.dims)]
    return dataset.assign({name: dataset[name].where(~there) for name in of_cells})


def _untexted(dataset: xr.Dataset) -> xr.Dataset:
    """The same with empty texts missing, as numbers of cells without a run are."""
    texts = [name for name, variable in dataset.data_vars.items() if variable.dtype.kind in "UO"]
    return dataset.assign({name: dataset[name].astype(object).where(dataset[name] != "") for name in texts})


class _Overrun:
    """Says so when a run takes longer than it was estimated to. ``jobs`` runs train at once, in their order."""

    def __init__(self, cells: Sequence[Cell], jobs: int, say: Callable[[str], None]) -> None:
        self.waiting, self.jobs, self.say = list(cells), jobs, say
        self.timers: dict[Cell, threading.Timer] = {}

    def __enter__(self) -> _Overrun:
        for _ in range(min(self.jobs, len(self.waiting))):
            self._begin(self.waiting.pop(0))
        return self

    def __exit__(self, *problem: object) -> None:
        for timer in self.timers.values():
            timer.cancel()

    def end(self, cell: Cell) -> None:
        """A run has ended, and the next one begins in its place."""
        if cell in self.timers:
            self.timers.pop(cell).cancel()
        if self.waiting:
            self._begin(self.waiting.pop(0))

    def _begin(self, cell: Cell) -> None:
        words = f"{cell.config.name}: takes longer than the {cell.seconds / 60:.0f} minutes estimated; it goes on."
        self.timers[cell] = threading.Timer(cell.seconds, self._tell, (words,))
        self.timers[cell].daemon = True
        self.timers[cell].start()

    def _tell(self, words: str) -> None:
        with suppress(OSError):  # whoever read it may be gone
            self.say(words)
