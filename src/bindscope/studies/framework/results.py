"""Named results: labelled datasets that a study makes of a run, computed once and saved.

A result says what it reads (metrics, checkpoints, other results) and how it is made. What was saved is used again only
while its *key* matches: a hash of the result's name and revision, the settings, the run's configuration and whatever it
read. A longer run, another n, another seed, another number type or a changed meaning gives another key, and the result
is computed again.

>>> library = Library(run, BINDING_RESULTS, folder=run.path / "results")
>>> library.fill("chain").dataset
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from bindscope.errors import BindscopeError, NotYet, suggest_nearest
from bindscope.own_files import OwnCodeFailed
from bindscope.runs.files import hash_json
from bindscope.runs.placement import CPU
from bindscope.runs.results import KEY, NAMES, is_current, read_result, write_result
from bindscope.schema import to_mapping
from bindscope.studies.framework.experiments import find_experiment_dataset, load_experiment_dataset

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from bindscope.runs.directory import Run

Item = TypeVar("Item")
OnProgress = Callable[[int, int], None]
Origin = Literal["computed", "kept", "read"]
CHECKPOINT = "checkpoint"  # the coordinate of a growing result that holds the hash of each step's weights
STEM = "result_stem"  # … and of one that grows with its run, what does not change while it does


class NotTestable(BindscopeError):
    """A run cannot give a result; the sentence says why. It is a finding, not a failure."""


@dataclass(frozen=True)
class Context:
    """What a result is made from. In a study whose claims are about experiments alone there is no run."""

    opened: Run | None
    n: int = 0
    seed: int = 0
    found: Mapping[str, xr.Dataset] = field(default_factory=dict)  # the results it needs
    runs_directory: Path = Path("runs")  # where datasets of experiments are looked for, before the shipped ones
    on_progress: OnProgress | None = None
    before: xr.Dataset | None = None  # of a result that grows: what was saved when the run had other checkpoints

    @property
    def run(self) -> Run:
        return _required(self.opened)

    @property
    def rng(self) -> np.random.Generator:
        """A fresh generator of this context's seed."""
        import numpy as np

        return np.random.default_rng(self.seed)

    def read_experiment(self, name: str, otherwise: str = "") -> xr.Dataset:
        """The dataset of an experiment, made here or shipped; where it is neither, ``otherwise`` says what to do."""
        path = find_experiment_dataset(name, self.runs_directory)
        if path is None:
            usual = f"one run cannot show this; train several with 'bindscope experiment {name}' and verify again"
            raise NotTestable(otherwise or usual)
        return load_experiment_dataset(path)


@dataclass(frozen=True)
class Result:
    """One named dataset of a run. Raise ``revision`` whenever its meaning changes: saved ones are then computed again."""

    name: str
    title: str  # what is being made, in a few words, for a progress bar
    compute: Callable[[Context], xr.Dataset]
    revision: int = 1
    n: int = 0  # how many examples are drawn unless a person says otherwise; 0 where none are
    metrics: bool = False  # whether it reads the run's evaluations
    steps: Callable[[Run], Sequence[int]] = lambda run: ()  # the checkpoints it reads
    needs: tuple[str, ...] = ()  # other results
    kept: bool = True  # False: found elsewhere each time, nothing of it is stored
    passes: int = 1  # through the model for each example and checkpoint, roughly: how long it takes
    grows: bool = False  # what was measured of a checkpoint stays true when the run gets more of them
    experiments: tuple[str, ...] = ()  # whose datasets it may read
    slow: bool = False  # takes long though it reads no checkpoint
    on_demand: bool = False  # costs much and no claim reads it: ``verify --everything`` leaves it out


def every_step(run: Run) -> Sequence[int]:
    """All saved checkpoints, for ``Result.steps``."""
    return run.steps


def last_step(run: Run) -> Sequence[int]:
    """The last saved checkpoint, if there is one."""
    return run.steps[-1:]


def with_progress(items: Sequence[Item], on_progress: OnProgress | None) -> Iterator[Item]:
    """Each item in turn; ``on_progress`` is told when what was done with it is done.

    >>> for step in with_progress(steps, context.on_progress):
    ...     measure(step)
    """
    for done, item in enumerate(items, start=1):
        yield item
        if on_progress is not None:
            on_progress(done, len(items))


@dataclass(frozen=True, eq=False)
class Filled:
    """A result that was asked for: its dataset, or why there is none."""

    name: str
    dataset: xr.Dataset | None
    origin: Origin
    reason: str = ""  # why there is no dataset
    may_come: bool = False  # more training might give one
    path: Path | None = None
    seconds: float = 0.0
    note: str = ""  # something a person should know: a damaged file that was computed again
    key: str = ""


class Library:
    """The results of one run, under one choice of n and seed; or, without a run, those of a study's experiments.

    ``folder`` is where new ones are saved; ``also_in`` are further folders to look in and never to write to.
    """

    def __init__(
        self,
        run: Run | None,
        results: Iterable[Result],
        folder: Path,
        also_in: Sequence[Path] = (),
        n: int | None = None,
        seed: int = 0,
        fresh: bool = False,
        runs_directory: Path = Path("runs"),
        name: str = "",
    ) -> None:
        self.opened = run
        self.name = name or (run.name if run is not None else "")
        self.results = {result.name: result for result in results}
        self.folder, self.also_in = folder, tuple(also_in)
        self.n, self.seed, self.fresh = n, seed, fresh
        self.runs_directory = runs_directory
        self.filled: dict[str, Filled] = {}
        self._lock = threading.RLock()  # a server asks from several threads; nothing is made twice

    @property
    def run(self) -> Run:
        return _required(self.opened)

    def order(self, names: Iterable[str]) -> list[str]:
        """These results and all they need, each after what it needs."""
        ordered: list[str] = []

        def visit(name: str) -> None:
            if name in ordered:
                return
            for need in self._find(name).needs:
                visit(need)
            ordered.append(name)

        for name in names:
            visit(name)
        return ordered

    def fill(self, name: str, on_progress: OnProgress | None = None) -> Filled:
        """A result: the saved one if its key matches, otherwise made and saved; with a reason where the run cannot give it."""
        with self._lock:
            if name not in self.filled:
                for need in self._find(name).needs:
                    self.fill(need)
                self.filled[name] = self._fill(self._find(name), on_progress)
            return self.filled[name]

    def find(self, name: str) -> Filled | None:
        """A result without running a model: one that is saved, or that takes no time. None: it must be measured.

        >>> library.find("chain") or print("measure it first: bindscope verify RUN")
        """
        with self._lock:
            result = self._find(name)
            needed = [self.find(need) for need in result.needs]
            if name in self.filled:
                return self.filled[name]
            if None in needed:
                return None
            at_once = not result.slow and not self.steps(result)
            if at_once or any(need.dataset is None for need in needed if need):
                return self.fill(name)
            found, _ = self._look_up(result, self.key(result))
            if found is not None:
                self.filled[name] = found
            return found

    def find_before(self, name: str) -> xr.Dataset | None:
        """What was saved of a growing result under another key, if only the checkpoints differ."""
        result = self._find(name)
        if not result.grows or self.fresh:
            return None
        stem = hash_json(self._stem(result))
        for folder in (self.folder, *self.also_in):
            path = folder / f"{result.name}.nc"
            with suppress(BindscopeError):  # a damaged one is of no use
                if path.is_file() and (dataset := read_result(path)).attrs.get(STEM) == stem and is_current(dataset):
                    return dataset
        return None

    def estimate_work(self, name: str) -> float:
        """Multiplications that measuring a result takes, roughly; of a growing one only at the new checkpoints."""
        result, before = self._find(name), self.find_before(name)
        known = set() if before is None else {str(sha256) for sha256 in before[CHECKPOINT].values}
        checkpoints = [self.run.manifest.checkpoints[step].sha256 for step in result.steps(self.run)]
        n_passes = result.passes * (self.n or result.n) * sum(sha256 not in known for sha256 in checkpoints)
        model = self.run.config.model
        return float(n_passes) * model.n_positions * model.n_parameters

    def settings(self, result: Result) -> dict[str, int]:
        """What a person can choose for this result."""
        return {"n": self.n or result.n, "seed": self.seed} if result.n else {}

    def key(self, result: Result) -> str:
        """The hash of everything that the dataset depends on."""
        read = {str(step): self.run.manifest.checkpoints[step].sha256 for step in self.steps(result)}
        needs = {need: self.fill(need).key for need in result.needs}
        evaluations = [self.run.status, self.run.metrics] if result.metrics else None
        return hash_json([*self._stem(result), read, evaluations, needs])

    def _stem(self, result: Result) -> list[Any]:
        """What a dataset depends on besides what it read."""
        config = None if self.opened is None else to_mapping(self.opened.manifest.config)
        dtype = "" if self.opened is None else self.opened.placement.results_in
        return [result.name, result.revision, self.settings(result), config, *([dtype] if dtype else [])]

    def steps(self, result: Result) -> Sequence[int]:
        """The checkpoints that a result reads."""
        return () if self.opened is None else result.steps(self.opened)

    def _find(self, name: str) -> Result:
        if name not in self.results:
            raise BindscopeError(f"there is no result '{name}'.{suggest_nearest(name, self.results)}")
        return self.results[name]

    def _fill(self, result: Result, on_progress: OnProgress | None) -> Filled:
        missing = [self.filled[need] for need in result.needs if self.filled[need].dataset is None]
        if missing:
            return Filled(result.name, None, "read", reason=missing[0].reason, may_come=missing[0].may_come)
        try:
            key = self.key(result)
            found, note = self._look_up(result, key)
            return found or self._make(result, key, note, on_progress)
        except _Unavailable as problem:
            return problem.explain(result.name)

    def _look_up(self, result: Result, key: str) -> tuple[Filled | None, str]:
        """A saved dataset whose key matches, and a note about files that could not be read."""
        notes = []
        for folder in () if self.fresh or not result.kept else (self.folder, *self.also_in):
            path = folder / f"{result.name}.nc"
            if not path.is_file():
                continue
            try:
                dataset = read_result(path)
            except BindscopeError:
                notes.append(f"{path} is damaged and was not used.")
                continue
            if dataset.attrs.get(KEY) == key and is_current(dataset):
                return Filled(result.name, dataset, "kept", path=path, note=" ".join(notes), key=key), ""
        return None, " ".join(notes)

    def context(self, name: str, on_progress: OnProgress | None = None) -> Context:
        """What a result is made from; the results it needs must have been filled."""
        result = self._find(name)
        settings = self.settings(result)
        found = {need: self.filled[need].dataset for need in result.needs}
        return Context(
            self.opened,
            settings.get("n", 0),
            settings.get("seed", 0),
            {need: dataset for need, dataset in found.items() if dataset is not None},
            self.runs_directory,
            on_progress,
            self.find_before(name),
        )

    def fill_with(self, name: str, compute: Callable[[], xr.Dataset]) -> Filled:
        """A result that is made by ``compute`` instead of here, labelled and saved as any other."""
        with self._lock:
            result = self._find(name)
            try:
                self.filled[name] = self._save(result, self.key(result), "", compute)
            except _Unavailable as problem:
                self.filled[name] = problem.explain(name)
            return self.filled[name]

    def _make(self, result: Result, key: str, note: str, on_progress: OnProgress | None) -> Filled:
        return self._save(result, key, note, lambda: result.compute(self.context(result.name, on_progress)))

    def _save(self, result: Result, key: str, note: str, compute: Callable[[], xr.Dataset]) -> Filled:
        start = time.perf_counter()
        try:
            dataset = compute()
        except OwnCodeFailed:
            raise
        except BindscopeError as problem:
            raise _Unavailable(str(problem), isinstance(problem, NotYet)) from None
        seconds = time.perf_counter() - start
        if not result.kept:
            return Filled(result.name, dataset, "read", seconds=seconds, note=note, key=key)
        dataset.attrs |= {
            KEY: key,
            "names": NAMES,
            "result": result.name,
            "revision": result.revision,
            "run": self.name,
        }
        dataset.attrs |= {f"asked_{name}": value for name, value in self.settings(result).items()}
        if self.opened is not None and self.opened.placement != CPU:
            dataset.attrs |= {"measured_on": self.opened.placement.device, "dtype": self.opened.placement.dtype}
        if result.grows:
            dataset.attrs[STEM] = hash_json(self._stem(result))
        path = write_result(self.folder, result.name, _storable(dataset))
        dataset = read_result(path)  # as whoever asks next will find it
        return Filled(result.name, dataset, "computed", path=path, seconds=seconds, note=note, key=key)


def _required(run: Run | None) -> Run:
    if run is None:
        raise NotTestable("this is measured on a run, and none was named")
    return run


class _Unavailable(Exception):
    """Inside this file only: a result that cannot be made."""

    def __init__(self, reason: str, may_come: bool) -> None:
        super().__init__(reason)
        self.may_come = may_come

    def explain(self, name: str) -> Filled:
        return Filled(name, None, "computed", reason=str(self), may_come=self.may_come)


def _storable(dataset: xr.Dataset) -> xr.Dataset:
    """The same dataset with attributes that netCDF knows: no None, no truth values, no nested lists."""

    def plain(value: Any) -> Any:
        if isinstance(value, bool):
            return int(value)
        if value is None:
            return "none"
        return value if isinstance(value, (str, int, float)) or hasattr(value, "dtype") else json.dumps(value)

    stored = dataset.copy()
    stored.attrs = {name: plain(value) for name, value in dataset.attrs.items()}
    return stored
