"""Patch grids of every pair at every checkpoint: a series on disk that grows checkpoint by checkpoint.

    >>> found = Grids(run="binding-deep", n=1000).answer(opened, folders, jobs=2)
    >>> found.summary().success.dims
    ('step', 'layer', 'position')
    >>> found.pairs(900, pair=7).pair_success.dims
    ('layer', 'position')

Each checkpoint is measured by itself and written at once, here, in other processes or on a cluster. What is there already
is read through and used; what is damaged, or was made from other weights, is named and measured again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bindscope.errors import BindscopeError
from bindscope.questions.fields import some_steps
from bindscope.questions.opened import Opened, Steps
from bindscope.questions.pairs import Direction, DrawnQuestion
from bindscope.questions.patch import Grid
from bindscope.questions.program import Progress
from bindscope.questions.question import ask
from bindscope.runs.directory import Run
from bindscope.runs.files import explain_failure, hash_json, remove_unfinished
from bindscope.runs.lock import LOCK_FILE, hold_file
from bindscope.runs.placement import Placement
from bindscope.runs.series import Series, Unusable, series_of
from bindscope.schema import to_mapping

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.tasks.binding import Program

Effect = Literal["logit_difference", "new_logit", "kl", "kept"]
REVISION = 1  # raised whenever what is measured changes its meaning
N_BITS = 11  # of a pair's number: three digits, which pack small
ASKED = "asked"  # the attribute of a file that holds the settings it was made with


@dataclass(frozen=True, kw_only=True)
class Grids(DrawnQuestion):
    """What does a patch in each cell do to each of many pairs, checkpoint by checkpoint?"""

    command_name, method, runs_on = "grids", "grids", "programs"

    grid: Grid = ask(
        "residual",
        help="Cells to change one after another: the residual stream at all positions (residual) or at the named positions "
        "of the chain, each head's whole output, or each MLP's.",
    )
    metric: Effect = ask("logit_difference", help="What is saved of each pair beside success.")
    direction: Direction = ask(
        "noising",
        help="noising runs the first program of a pair and takes from the second; denoising the other way round.",
    )
    steps: Steps = some_steps("all")

    @property
    def settings(self) -> dict[str, Any]:
        """What the numbers of a checkpoint depend on, beside its weights."""
        return {name: value for name, value in self.values().items() if name not in ("run", "steps")}

    @property
    def name(self) -> str:
        """The folder of the series: what was asked, in a word.

        >>> Grids(run="binding-deep", n=1000).name
        'residual-n1000-seed0'
        """
        words = [self.grid, f"n{self.n}", f"seed{self.seed}"]
        words += [] if self.depth is None else [f"depth{self.depth}"]
        words += [] if self.first_root_line == 3 else [f"from-line{self.first_root_line}"]
        usual = {"noising", "logit_difference"}
        return "-".join([*words, *(word for word in (self.direction, self.metric) if word not in usual)])

    def find(self, opened: Opened, folders: Sequence[Path]) -> GridSeries:
        """What was measured so far, in these folders of results."""
        return GridSeries(self, opened, series_of(folders, self.name))

    def answer(
        self,
        opened: Opened,
        folders: Sequence[Path],
        jobs: int | None = None,
        cluster: str | None = None,
        on_progress: Progress | None = None,
    ) -> GridSeries:
        """The series, after what is missing of its steps was measured into the first of these folders of results.

        ``jobs`` processes measure, as many as there are processors when left out, or the machines of a ``cluster``.
        """
        self.draw(opened.task_of(self.runs_on))  # refused before anything is begun
        steps, found = opened.find_steps(self.steps), self.find(opened, folders)
        path = found.series.folder / LOCK_FILE
        with explain_failure(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with hold_file(path) as free:
            if not free:
                raise BindscopeError(f"{path.parent}: another process is measuring this; wait for it or end it.")
            remove_unfinished(path.parent)
            missing, notes = found.find_missing(steps, on_progress)
            pieces = [found.piece(step) for step in missing]
            _measure_all(pieces, found, len(steps), jobs, cluster, on_progress)
        return replace(found, measured=tuple(missing), notes=notes)


@dataclass(frozen=True)
class GridSeries:
    """Patch grids of many pairs over training, as they are on disk now.

    >>> grids = run.grids(n=8, steps=[900, 3700], jobs=1)
    """

    question: Grids
    opened: Opened
    series: Series
    measured: tuple[int, ...] = ()  # steps that were measured for who asked
    notes: tuple[str, ...] = field(default=(), compare=False)  # files that could not be used

    @property
    def steps(self) -> tuple[int, ...]:
        """The checkpoints of the run that have a file."""
        return tuple(step for step in self.series.steps if step in self.opened.run.manifest.checkpoints)

    def summary(self, steps: Collection[int] | None = None) -> xr.Dataset:
        """Means over pairs with their intervals and ``n``, over (step, cell …): of these steps, or of all that are there.

        >>> grids.summary().success.sel(layer=2)
        """
        import xarray as xr

        chosen = self.steps if steps is None else sorted(steps)
        if not chosen:
            raise Unusable(f"{self.series.folder}: nothing is measured yet.")
        parts = [self.series.read(step, self.key(step), self.means) for step in chosen]
        dataset = xr.concat(parts, xr.IndexVariable("step", list(chosen)), combine_attrs="drop_conflicts")
        return dataset.assign_attrs(run=self.opened.name)

    def pairs(self, step: int, pair: int | slice | None = None) -> xr.Dataset:
        """``pair_success`` and the other metric of a step over (pair, cell …), of all pairs or of some; no more is read.

        >>> grids.pairs(grids.steps[-1], pair=7).pair_success
        """
        at = {} if pair is None else {"pair": pair}
        if isinstance(pair, int) and not 0 <= pair < self.question.n:
            raise BindscopeError(f"pair {pair}: there are pairs 0 to {self.question.n - 1}.")
        return self.series.read(step, self.key(step), self.of_pairs, **at)

    def programs(self, pair: int) -> tuple[Program, Program]:
        """The two programs of a pair: the one that is run when noising, and its counterfactual.

        >>> grids.programs(7)[0].one_line
        """
        from bindscope.tasks.binding import Program
        from bindscope.tasks.binding.rendered import rows_of

        drawn = self.question.draw(self.opened.task_of(self.question.runs_on)).pairs
        first, second = (rows_of(batch.take(slice(pair, pair + 1)))[0] for batch in (drawn.base, drawn.counterfactual))
        return Program.from_tokens(first.tolist()), Program.from_tokens(second.tolist())

    @property
    def of_pairs(self) -> list[str]:
        return ["pair_success", f"pair_{self.question.metric}"]

    @property
    def means(self) -> list[str]:
        names = ("success", self.question.metric)
        return ["n", *(f"{name}{suffix}" for name in names for suffix in ("", "_low", "_high"))]

    def key(self, step: int) -> str:
        """The hash of everything that the file of a step depends on."""
        run = self.opened.run
        weights = run.manifest.checkpoints[step].sha256
        return hash_json(
            [REVISION, self.question.settings, to_mapping(run.manifest.config), weights, run.placement.results_in]
        )

    def find_missing(
        self, steps: Sequence[int], on_progress: Progress | None = None
    ) -> tuple[list[int], tuple[str, ...]]:
        """The steps that must be measured, and a sentence for each file that is there and cannot be used."""
        missing, notes, there = [], [], set(self.series.steps)
        for index, step in enumerate(steps, start=1):
            try:
                self.series.check(step, self.key(step), [*self.means, *self.of_pairs], "pair", self.question.n)
            except Unusable as problem:
                missing.append(step)
                notes += [f"{problem} It was measured again."] if step in there else []
            if on_progress is not None:
                on_progress(index - len(missing), len(steps))
        return missing, tuple(notes)

    def piece(self, step: int) -> GridPiece:
        run = self.opened.run
        return GridPiece(self.question, str(run.path.resolve()), run.placement, str(self.series.folder.resolve()), step)


@dataclass(frozen=True)
class GridPiece:
    """What one process measures at a time: a checkpoint."""

    question: Grids
    path: str  # of the run
    placement: Placement
    folder: str
    step: int


def measure_grid_piece(piece: GridPiece) -> str:
    """What another process does, with one thread; empty, or the sentence that says why it could not."""
    import torch

    torch.set_num_threads(1)
    try:
        opened = Opened.of(Run.open(piece.path, piece.placement))
        write_step(GridSeries(piece.question, opened, Series(Path(piece.folder))), piece.step)
    except BindscopeError as problem:
        return str(problem)
    return ""


def write_step(found: GridSeries, step: int) -> Path:
    """Measure a checkpoint and write its file."""
    from bindscope.measures.binding.pair_grids import measure_pair_grid
    from bindscope.measures.binding.patching import Patch

    question, opened = found.question, found.opened
    drawn = question.draw(opened.task_of(question.runs_on))
    patch = Patch(question.grid, direction=question.direction)
    dataset = measure_pair_grid(opened.load(step), drawn.pairs, patch, question.metric, question.seed)
    return found.series.write(step, found.key(step), _compact(dataset, found, step, drawn.note), "pair")


def _compact(dataset: xr.Dataset, found: GridSeries, step: int, note: str) -> xr.Dataset:
    """The dataset in small number types, with what identifies it."""
    import numpy as np

    from bindscope.studies.framework.measuring import round_bits

    question, checkpoints = found.question, found.opened.run.manifest.checkpoints
    stored = dataset.assign({name: dataset[name].astype(np.float32) for name in found.means if name != "n"})
    rounded, whole = f"pair_{question.metric}", {"dtype": "int8", "_FillValue": np.int8(-1)}
    stored[rounded] = stored[rounded].copy(data=round_bits(stored[rounded].values, N_BITS))
    for name in {"pair_success", f"pair_{question.metric}"} & {"pair_success", "pair_kept"}:
        stored[name].encoding = dict(whole)
    about = {"run": found.opened.run.name, "checkpoint": checkpoints[step].sha256, "pairs": note, "n": question.n}
    about |= {"grid": question.grid, "metric": question.metric, "direction": question.direction, "seed": question.seed}
    return stored.assign_attrs(**about, **{ASKED: json.dumps(question.settings, sort_keys=True)})


def _measure_all(
    pieces: Sequence[GridPiece],
    found: GridSeries,
    n_steps: int,
    jobs: int | None,
    cluster: str | None,
    on_progress: Progress | None,
) -> None:
    """Measure the pieces; a run of a person's own family, which other processes do not know, always here."""
    from bindscope.runs.workers import open_workers, usable_cores

    run, done = found.opened.run, n_steps - len(pieces)
    usual = usable_cores() if run.placement.device == "cpu" else 1
    n_jobs = min(jobs or usual, len(pieces))
    if run.manifest.family_from or (cluster is None and n_jobs < 2):
        for piece in pieces:
            write_step(found, piece.step)
            done = _tell(done, n_steps, on_progress)
        return
    with open_workers(n_jobs, cluster, found.series.folder / LOCK_FILE, run.placement.device == "cuda") as workers:
        pending = {workers.submit(measure_grid_piece, piece) for piece in pieces}
        while pending:
            for ended in workers.wait(pending):
                pending.remove(ended)
                if problem := workers.take(ended):
                    raise BindscopeError(problem)
                done = _tell(done, n_steps, on_progress)


def _tell(done: int, n_steps: int, on_progress: Progress | None) -> int:
    if on_progress is not None:
        on_progress(done + 1, n_steps)
    return done + 1


def read_question(run: str, series: Series) -> Grids:
    """The question that a series on disk answers, by what one of its files says."""
    from bindscope.runs.results import read_part

    for step in series.steps:
        try:
            asked = json.loads(str(read_part(series.path(step), [], {}).attrs[ASKED]))
            question = Grids(run=run, **asked)
        except (BindscopeError, ValueError, KeyError, TypeError):
            continue
        if question.name == series.folder.name:
            return question
    raise Unusable(f"{series.folder}: none of its files says what was measured.")
