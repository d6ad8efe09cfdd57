"""Measure the results of a run in several processes, or on a cluster, which give what one process gives.

What is handed out is a *piece*: a result that another result does not wait for, or of a growing one some of its
checkpoints. The first process puts the checkpoints together, labels and saves everything; the others only measure.

>>> fill_together(library, library.order(["chain", "grids"]), jobs=2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bindscope.errors import BindscopeError, NotYet
from bindscope.families import find_family
from bindscope.runs.directory import MANIFEST, Run
from bindscope.runs.workers import Workers, open_workers, usable_cores
from bindscope.studies.framework.measuring import RESULTS
from bindscope.studies.framework.results import CHECKPOINT, Context, Library, OnProgress, Result

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.placement import Placement

OnResult = Callable[[Result, int, int], OnProgress | None]  # given the next result, its index and how many there are
WORTH_PROCESSES = 1e11  # multiplications, ten seconds or so: starting a process takes two
PIECES_A_JOB = 2  # of a growing result: checkpoints differ in cost, so each process gets several pieces


@dataclass(frozen=True)
class Piece:
    """What one process measures: a result, at some of the checkpoints or as it is."""

    name: str
    path: str  # of the run
    placement: Placement
    context: Context  # without the run
    steps: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Measured:
    """A dataset, or the sentence that says why there is none."""

    dataset: xr.Dataset | None
    problem: str = ""
    may_come: bool = False

    def unwrap(self) -> xr.Dataset:
        if self.dataset is None:
            raise (NotYet if self.may_come else BindscopeError)(self.problem)
        return self.dataset


def fill_together(
    library: Library,
    names: Sequence[str],
    jobs: int | None = None,
    on_result: OnResult | None = None,
    cluster: str | None = None,
) -> None:
    """Fill these results, each named after all that it needs, ``jobs`` processes at a time.

    Left out, as many as there are processors, if that pays; on a GPU one. With the address of a Ray ``cluster`` (or
    ``auto``) its machines measure instead. Results that are saved or take no time are read here, and no process is
    started for them.
    """
    if cluster is not None or (_choose_jobs(library, names) if jobs is None else jobs) > 1:
        manifest = None if library.opened is None else library.opened.path / MANIFEST
        gpu = library.opened is not None and library.opened.placement.device == "cuda"
        with open_workers(jobs or usable_cores(), cluster, manifest, gpu) as workers:
            _Filling(library, names, workers, on_result).finish()
        return
    for index, name in enumerate(names):
        library.fill(name, on_result(library.results[name], index, len(names)) if on_result else None)


def _choose_jobs(library: Library, names: Sequence[str]) -> int:
    if library.opened is None or library.run.placement.device != "cpu":
        return 1
    work = sum(library.estimate_work(name) for name in names if library.find(name) is None)
    return usable_cores() if work > WORTH_PROCESSES else 1


def can_be_shared(library: Library, name: str) -> bool:
    """Whether another process can make a result: it finds the same one by its name, in the study of the run's family."""
    run = library.opened
    if run is None or run.manifest.family_from:
        return False
    return results_of(run.config.task.family).get(name) is library.results[name]


def results_of(family: str) -> dict[str, Result]:
    """The results that runs of a family have, by name."""
    study = find_family(family).study()
    return {result.name: result for result in (RESULTS if study is None else study.results)}


class _Filling:
    """The results that are left to fill, and the pieces on their way."""

    def __init__(self, library: Library, names: Sequence[str], workers: Workers, on_result: OnResult | None) -> None:
        self.library, self.workers, self.on_result = library, workers, on_result
        self.waiting, self.n_total, self.n_done = list(names), len(names), 0
        self.pieces: dict[Future[Measured], str] = {}  # on their way, with the result each belongs to
        self.found: dict[str, list[Measured]] = {}

    def finish(self) -> None:
        self.hand_out()
        while self.pieces:
            for piece in self.workers.wait(self.pieces):
                self.take(piece)
            self.hand_out()

    def hand_out(self) -> None:
        """Whatever waits for nothing: it is read, made here, or its pieces are given to the others."""
        more = True
        while more:
            ready = [name for name in self.waiting if self._is_ready(name)]
            more = bool(ready)
            for name in sorted(
                ready, key=self._work_behind, reverse=True
            ):  # the longest first: no process is left alone
                self.waiting.remove(name)
                if self.library.find(name) is not None:
                    self.end(name)
                elif can_be_shared(self.library, name):
                    self.share(name)
                else:
                    self.library.fill(name, self.tell(name))
                    self.end(name)

    def share(self, name: str) -> None:
        """Give out the pieces of a result."""
        run = self.library.run
        context = replace(self.library.context(name), opened=None, on_progress=None)
        context = replace(context, runs_directory=context.runs_directory.resolve())  # wherever the other process stands
        whole = Piece(name, str(run.path.resolve()), run.placement, context)
        groups = _split(_new_steps(self.library, name, context.before), PIECES_A_JOB * self.workers.n)
        pieces = [replace(whole, steps=steps) for steps in groups] if len(groups) > 1 else [whole]
        self.found[name] = []
        for piece in pieces:
            self.pieces[self.workers.submit(measure_piece, piece)] = name

    def take(self, piece: Future[Measured]) -> None:
        """A piece has ended; with the last one of a result, save the result."""
        name = self.pieces.pop(piece)
        self.found[name].append(self.workers.take(piece))
        if name in self.pieces.values():
            return
        parts = self.found.pop(name)
        if len(parts) == 1:
            self.library.fill_with(name, parts[0].unwrap)
        else:
            self.library.fill_with(name, lambda: self.join(name, parts))
        self.end(name)

    def join(self, name: str, parts: Sequence[Measured]) -> xr.Dataset:
        """A growing result: what was measured of each checkpoint is what was known before."""
        context = self.library.context(name)
        before = [] if context.before is None else [context.before]
        known = _over_steps([*before, *(part.unwrap() for part in parts)])
        return self.library.results[name].compute(replace(context, before=known))

    def end(self, name: str) -> None:
        advance = self.tell(name)
        self.n_done += 1
        if advance is not None:
            advance(1, 1)

    def tell(self, name: str) -> OnProgress | None:
        return self.on_result(self.library.results[name], self.n_done, self.n_total) if self.on_result else None

    def _work_behind(self, name: str) -> float:
        """Multiplications that a result takes, with those of what waits for it."""
        after = [each for each in self.waiting if name in self.library.results[each].needs]
        return self.library.estimate_work(name) + max(map(self._work_behind, after), default=0.0)

    def _is_ready(self, name: str) -> bool:
        return all(need in self.library.filled for need in self.library.results[name].needs)


def measure_piece(piece: Piece) -> Measured:
    """What another process does; its own number of threads is one."""
    import torch

    torch.set_num_threads(1)
    try:
        run = Run.open(piece.path, piece.placement)
        opened = run if piece.steps is None else run.only(piece.steps)
        result = results_of(run.config.task.family)[piece.name]
        return Measured(result.compute(replace(piece.context, opened=opened)))
    except BindscopeError as problem:
        return Measured(None, str(problem), isinstance(problem, NotYet))


def _new_steps(library: Library, name: str, before: xr.Dataset | None) -> list[int]:
    """Of a growing result the checkpoints that were not measured before; none of any other."""
    result, run = library.results[name], library.run
    if not result.grows:
        return []
    known = set() if before is None else {str(sha256) for sha256 in before[CHECKPOINT].values}
    return [step for step in result.steps(run) if run.manifest.checkpoints[step].sha256 not in known]


def _split(steps: Sequence[int], n_groups: int) -> list[tuple[int, ...]]:
    """Groups of nearly equal size, each with early and late steps."""
    n = min(n_groups, len(steps))
    return [tuple(steps[first::n]) for first in range(n)]


def _over_steps(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """What datasets of different checkpoints say of each, in one."""
    import xarray as xr

    each = [part[[name for name in part.data_vars if "step" in part[name].dims]] for part in parts]
    return xr.concat(each, "step", combine_attrs="drop")
