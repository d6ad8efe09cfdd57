"""The lab: the runs that are shown, opened once, with their models and results at hand.

A name in a request is only ever looked up among the opened runs; it never becomes part of a path.

>>> lab = Lab.open([find_run("binding-laptop")])
>>> lab.find("binding-laptop").model(3700)
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.runs.directory import MANIFEST, Run
from bindscope.studies.results import Library
from bindscope.studies.verify import find_study

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer

N_MODELS = 64  # models kept in memory over all runs; small ones take a few megabytes


class Missing(BindscopeError):
    """Something that was asked for is not there."""


class Lab:
    """Runs by name. ``kept_in`` is where results of runs that may not be written to are kept."""

    def __init__(self, runs: Iterable[LabRun], kept_in: Path, live: bool = True) -> None:
        self.runs: dict[str, LabRun] = {}
        self.kept_in = kept_in
        self.live = live  # whether questions to a model are answered: not in a static copy
        for run in runs:
            self.add(run)

    @classmethod
    def open(cls, paths: Iterable[Path], kept_in: Path = Path("runs"), read_only: Iterable[Path] = ()) -> Lab:
        """The runs at ``paths``; results of those in ``read_only`` are kept outside them."""
        guarded = {path.resolve() for path in read_only}
        return cls((LabRun(Run.open(path), kept_in, path.resolve() in guarded) for path in paths), kept_in)

    def add(self, run: LabRun) -> str:
        """Show one more run, under its own name or, where that is taken, with a number behind it."""
        name, number = run.name, 1
        while name in self.runs and self.runs[name].path.resolve() != run.path.resolve():
            number += 1
            name = f"{run.name}-{number}"
        run.name = name
        self.runs[name] = run
        return name

    def find(self, name: str) -> LabRun:
        """An opened run by its name."""
        if name not in self.runs:
            raise Missing(f"there is no run '{name}' here.{suggest_nearest(name, self.runs)}")
        return self.runs[name]


class LabRun:
    """One run as the page sees it. A run in training grows, so it is read again whenever its files have changed."""

    def __init__(self, run: Run, kept_in: Path, read_only: bool = False) -> None:
        self.name = run.name
        self.path = run.path
        self._run = run
        self._seen = self._stamp()
        self._kept_in = kept_in
        self._read_only = read_only
        self._lock = threading.RLock()
        self._models: OrderedDict[int, Transformer] = OrderedDict()
        self._shown: frozenset[int] | None = None
        self._library: tuple[str, Library] | None = None

    @property
    def run(self) -> Run:
        """The run as it is on disk now."""
        with self._lock:
            stamp = self._stamp()
            if stamp != self._seen:
                self._run, self._seen = Run.open(self.path), stamp
            return self._run

    @property
    def version(self) -> str:
        """Changes whenever the run does."""
        return hashlib.sha256(repr((self.name, self._stamp())).encode()).hexdigest()[:16]

    @cached_property
    def family(self) -> str:
        return self.run.config.task.family

    @property
    def steps(self) -> tuple[int, ...]:
        """The kept steps that are shown, all of them unless ``show_steps`` chose some."""
        return tuple(step for step in self.run.steps if self._shown is None or step in self._shown)

    def show_steps(self, steps: Iterable[int]) -> None:
        """Show only these checkpoints, so that a static copy stays small; results still speak of all."""
        self._shown = frozenset(steps)

    def find_step(self, text: str | int) -> int:
        """A kept step; one that was not kept is refused with the nearest."""
        try:
            return self.run.find_step(text)
        except BindscopeError as problem:
            raise Missing(str(problem)) from None

    def checkpoint_hash(self, step: int) -> str:
        return self.run.manifest.checkpoints[step].sha256

    def model(self, step: int) -> Transformer:
        """The model at a step, read once."""
        with self._lock:
            if step not in self._models:
                self._models[step] = self.run.checkpoint(step)
                while len(self._models) > N_MODELS:
                    self._models.popitem(last=False)
            self._models.move_to_end(step)
            return self._models[step]

    @property
    def library(self) -> Library:
        """Results of this run: kept ones are read, missing ones are made and kept."""
        with self._lock:
            version = self.version
            if self._library is None or self._library[0] != version:
                run, inside = self.run, self.path / "results"
                study = find_study(self.family)
                folder = self._kept_in / f"verify-{run.name}" / "results" if self._read_only else inside
                also_in = (inside,) if self._read_only else ()
                library = Library(run, study.results, folder, also_in, runs_directory=self._kept_in)
                self._library = version, library
            return self._library[1]

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        """Sizes and times of the files that change while a run trains."""
        found = []
        for file in (MANIFEST, "metrics.jsonl"):
            try:
                status = (self.path / file).stat()
            except OSError:
                found.append((0, 0))
            else:
                found.append((status.st_mtime_ns, status.st_size))
        return tuple(found)
