"""The lab: the runs that are shown, opened once, with their models and results at hand.

A name in a request is only ever looked up among the opened runs; it never becomes part of a path.

>>> lab = Lab.open([find_run("binding-laptop")], watched=[Path("runs")])
>>> lab.find("binding-laptop").model(3700)
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.families import UnknownFamily, find_family
from bindscope.questions.opened import require_kind
from bindscope.runs.directory import MANIFEST, Run
from bindscope.runs.locate import results_folders, study_results
from bindscope.runs.lock import is_locked
from bindscope.runs.placement import CPU, Placement
from bindscope.runs.series import list_series
from bindscope.studies.framework.command import describe_origin, find_command
from bindscope.studies.framework.results import Library
from bindscope.studies.framework.verify import study_or_none
from bindscope.web.cancel import check_cancelled
from bindscope.web.models import Models

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

N_RUNS = 500  # runs that are shown at most
LOOK_EVERY = 0.5  # seconds between two looks for new runs

T = TypeVar("T")


class Missing(BindscopeError):
    """Something that was asked for is not there."""


class NotMeasured(Missing):
    """A run could have this and has it not: to a reader no error, but a sentence that says how to get it.

    ``results`` names those of the run that would give it once they are measured.
    """

    def __init__(self, sentence: str, results: Iterable[str] = ()) -> None:
        super().__init__(sentence)
        self.results = tuple(results)


class Lab:
    """Runs by name. ``kept_in`` is where results of runs that may not be written to are saved.

    Runs that appear in one of the ``watched`` directories are shown from then on, and runs whose directory is gone no more.
    ``unreadable`` says of each run there that cannot be opened why not.
    """

    def __init__(
        self,
        runs: Iterable[LabRun],
        kept_in: Path = Path("runs"),
        live: bool = True,
        watched: Iterable[Path] = (),
        placement: Placement = CPU,
    ) -> None:
        self.runs: dict[str, LabRun] = {}  # replaced whole whenever it changes: others may be reading it
        self.kept_in = kept_in
        self.placement = placement  # of every model that is questioned
        self.live = live  # whether questions to a model are answered: not in a static copy
        self.opens_directories = False  # whether the page may name further directories
        self.starts_work = False  # whether the page may start measurements and trainings
        self.watched = tuple(watched)
        self.unreadable: dict[Path, str] = {}  # replaced whole, as ``runs`` is
        self.models = Models()  # of all runs
        self.libraries: dict[
            str, tuple[str, Library]
        ] = {}  # results of studies without a run: of which files, and them
        self._lock = threading.RLock()
        self._looked = float("-inf")
        for run in runs:
            self.add(run)

    @classmethod
    def open(
        cls,
        paths: Iterable[Path],
        kept_in: Path = Path("runs"),
        read_only: Iterable[Path] = (),
        *,
        live: bool = True,
        watched: Iterable[Path] = (),
        placement: Placement = CPU,
    ) -> Lab:
        """The runs at ``paths``; results of those in ``read_only`` are saved outside them."""
        guarded = {path.resolve() for path in read_only}
        runs = (LabRun(Run.open(path, placement), kept_in, path.resolve() in guarded) for path in paths)
        return cls(runs, kept_in, live, watched, placement)

    @property
    def version(self) -> str:
        """Changes whenever any run does, comes or goes."""
        self.look()
        return _hash(*((name, run.version) for name, run in self.runs.items()), *self.unreadable.values())

    def add(self, run: LabRun) -> str:
        """Show one more run, under its own name or, where that is taken, with a number behind it."""
        with self._lock:
            for name, known in self.runs.items():
                if known.path.resolve() == run.path.resolve():
                    return name
            if len(self.runs) >= N_RUNS:
                raise BindscopeError(f"{N_RUNS} runs are open already; start the server with the ones you want to see.")
            plain, number = plain_name(run.name), 1
            name = plain
            while name in self.runs:
                number += 1
                name = f"{plain}-{number}"
            run.name, run.models = name, self.models
            self.runs = {**self.runs, name: run}
            return name

    def find(self, name: str) -> LabRun:
        """An opened run by its name."""
        if name not in self.runs:
            self.look()
        found = self.runs.get(name)
        if found is None:
            raise Missing(f"there is no run '{name[:100]}' here.{suggest_nearest(name[:100], self.runs)}")
        return found

    def look(self) -> None:
        """Take in the runs that have appeared in the watched directories, and let go of those that are gone."""
        with self._lock:
            if time.monotonic() - self._looked < LOOK_EVERY:
                return
            self._looked = time.monotonic()
            self.runs = {name: run for name, run in self.runs.items() if run.exists}
            known = {run.path.resolve() for run in self.runs.values()}
            unreadable = {}
            for path in (file.parent for folder in self.watched for file in sorted(folder.glob(f"*/{MANIFEST}"))):
                if path.resolve() in known or path.name.startswith("."):
                    continue
                try:
                    self.add(LabRun(Run.open(path, self.placement), self.kept_in))
                except BindscopeError as problem:  # damaged, or of a later version: it is not shown
                    unreadable[path] = str(problem)
            self.unreadable = unreadable

    def without_paths(self, sentence: str) -> str:
        """A sentence with the names of runs in place of their paths on this machine."""
        names = {str(run.path): run.name for run in self.runs.values()}
        names |= {str(path): plain_name(path.name) for path in self.unreadable}
        for path, name in names.items():
            if os.sep in path:  # a single word tells nothing
                whole = rf"(?<![^\s'\"(]){re.escape(path)}(?=[/:;,'\")\s]|$)"
                sentence = re.sub(whole, name, sentence)
        return sentence


class LabRun:
    """One run as the page sees it. A run in training grows, so it is read again whenever its files have changed."""

    def __init__(self, run: Run, kept_in: Path = Path("runs"), read_only: bool = False) -> None:
        self.name = run.name
        self.path = run.path
        self._run = run
        self._seen = self._stamp()
        self._kept_in = kept_in
        self.read_only = read_only
        self._lock = threading.RLock()
        self.models = Models()
        self._shown: frozenset[int] | None = None
        self._library: tuple[str, Library] | None = None
        self._remembered: dict[str, tuple[str, Any]] = {}

    @property
    def run(self) -> Run:
        """The run as it is on disk now."""
        with self._lock:
            stamp = self._stamp()
            if stamp != self._seen:
                self._run, self._seen = Run.open(self.path, self._run.placement), stamp
            return self._run

    @property
    def exists(self) -> bool:
        return (self.path / MANIFEST).is_file()

    @property
    def version(self) -> str:
        """Changes whenever the run does: its files, its results, or whether it is being trained."""
        training = self._run.manifest.status == "training" and is_locked(self.path)
        series = (each for name in list_series(self.results_folders).values() for each in (name.folder, *name.also_in))
        folders = [_stamp_of(folder) for folder in (*self.results_folders, *series)]
        return _hash(self.name, self._stamp(), folders, training)

    @cached_property
    def family(self) -> str:
        return self.run.config.task.family

    @property
    def kinds(self) -> frozenset[str]:
        """What can be asked of it: "programs", "sums", … and "claims" where a study has some about such runs."""
        try:
            return frozenset(find_family(self.family).pages_of(self.run.config.task))
        except UnknownFamily:  # it is named among what cannot be shown
            return frozenset()

    @property
    def family_location(self) -> str:
        """Where its family is defined, as --family takes it; empty where that is found by itself."""
        return find_family(self.family).location

    @cached_property
    def description(self) -> str:
        """What it is, in the words of the preset it comes from."""
        return describe_origin(self.run)

    @cached_property
    def command(self) -> str:
        """The command that makes it again."""
        return find_command(self.run)

    @property
    def steps(self) -> tuple[int, ...]:
        """The saved steps that are shown, all of them unless ``show_steps`` chose some."""
        return tuple(step for step in self.run.steps if self._shown is None or step in self._shown)

    def show_steps(self, steps: Iterable[int]) -> None:
        """Show only these checkpoints, so that a static copy stays small; results still speak of all."""
        self._shown = frozenset(steps)
        self._remembered = {}

    def find_step(self, text: str | int) -> int:
        """A saved step; one that was not saved is refused with the nearest."""
        try:
            return self.run.find_step(text)
        except BindscopeError as problem:
            raise Missing(str(problem)) from None

    def require(self, kind: str) -> Any:
        """Its task, where runs of this kind are meant; another run is refused with a sentence."""
        return require_kind(self.run, kind, self.name)

    def checkpoint_hash(self, step: int) -> str:
        return self.run.manifest.checkpoints[step].sha256

    def model(self, step: int) -> Transformer:
        """The model at a step, read once. Work that nobody waits for any more ends here."""
        check_cancelled()
        step = self.find_step(step)
        key = f"{self.path} {self.checkpoint_hash(step)}"  # a run that went on again has other weights
        return self.models.find(key, lambda: _cancellable(self.run.checkpoint(step)))

    def remember(self, name: str, make: Callable[[], T]) -> T:
        """Something made of this run, made again only when the run has changed."""
        with self._lock:
            version = self.version
            if name not in self._remembered or self._remembered[name][0] != version:
                self._remembered[name] = version, make()
            value: T = self._remembered[name][1]
            return value

    @property
    def library(self) -> Library:
        """Results of this run: saved ones are read, missing ones are made and saved."""
        with self._lock:
            version = self.version
            if self._library is None or self._library[0] != version:
                folder, *also_in = self.results_folders
                results = study_or_none(self.family).results
                library = Library(self.run, results, folder, also_in, runs_directory=self._kept_in)
                self._library = version, library
            return self._library[1]

    @property
    def saved_in(self) -> Path:
        """The directory that gets results/: the run itself, or another one for a run that is only read."""
        return study_results(plain_name(self._run.name), self._kept_in).parent if self.read_only else self.path

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        """Sizes and times of the files that change while a run trains."""
        return tuple(_stamp_of(self.path / file) for file in (MANIFEST, "metrics.jsonl"))

    @cached_property
    def results_folders(self) -> tuple[Path, ...]:
        """Where results are: new ones are saved in the first folder, which another process may add to at any time."""
        name, placement = plain_name(self._run.name), self._run.placement
        return results_folders(self.path, name, self.read_only, self._kept_in, placement=placement)


def _cancellable(model: Transformer) -> Transformer:
    """A model whose every run ends work that nobody waits for any more."""
    model.register_forward_pre_hook(lambda *_: check_cancelled())
    return model


def plain_name(text: str) -> str:
    """A name as it can stand in an address and as a file: what a run calls itself may be anything.

    >>> plain_name("../my run")
    'my-run'
    """
    return re.sub(r"[^A-Za-z0-9_.+-]+", "-", text).lstrip("-_.+")[:80] or "run"


def stamp_files(paths: Iterable[Path]) -> str:
    """Changes whenever one of these files does, comes or goes."""
    return _hash(*((str(path), _stamp_of(path)) for path in paths))


def _stamp_of(path: Path) -> tuple[int, int]:
    """When a file or folder last changed, and its size; zeros where there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
