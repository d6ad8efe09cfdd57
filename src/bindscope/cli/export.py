"""``bindscope export``: the lab as a directory of plain files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.outcome import show_progress
from bindscope.errors import BindscopeError
from bindscope.runs.locate import RUNS_DIRECTORY, find_run, is_shipped, runs_in, shipped_runs

N_NAMED = 12  # how many of the bodies that are left out are named one by one


def export(
    directory: Path,
    /,
    *runs: str,
    steps: Annotated[int | None, Parameter(show_default=False)] = None,
    weights: bool = True,
    replace: Flag = False,
    place: Place = HERE,
) -> None:
    """Write the lab's pages to a directory that any web server can host.

    Everything that can be read is written as a file, of the runs that are named;
    without names of the shipped ones alone, where 'bindscope serve' also shows
    those under ./runs. Nothing needs a server afterwards: predictions and patches
    of small models are computed in the reader's browser; other live controls show
    the command to run.

    Examples:
        bindscope export site/
        bindscope export site/ runs/*
        bindscope export site/ runs/mine binding-plain --steps 12 --replace

    Parameters
    ----------
    directory
        The directory to write: a new or empty one, or an earlier export with --replace.
    runs
        Paths, names under ./runs, or shipped runs' names.
    steps
        Show at most this many checkpoints of each run, chosen where it changes most.
    weights
        Also copy the weights of small models, for the reader's browser to run.
    replace
        Replace an earlier export.
    """
    from bindscope.runs.thin import choose_steps
    from bindscope.web.export import export_site
    from bindscope.web.lab import Lab

    if steps is not None and steps < 2:
        raise BindscopeError("--steps: show at least the first and the last checkpoint.")
    paths = [find_run(run) for run in runs] or shipped_runs()
    shipped = [path for path in paths if is_shipped(path)]
    lab = Lab.open(paths, RUNS_DIRECTORY, read_only=shipped, placement=place.check())
    if steps is not None:
        for run in lab.runs.values():
            run.show_steps(choose_steps(run.run, steps) if len(run.run.steps) > 1 else run.run.steps)
    start = time.perf_counter()
    with show_progress("files") as on_progress:
        made = export_site(lab, directory, weights=weights, replace=replace, on_progress=on_progress)
    seconds = time.perf_counter() - start
    print(
        f"{', '.join(lab.runs)}: {made.n_files:,} files, {made.n_bytes / 1e6:.1f} MB in {directory}, {seconds:.0f} s."
    )
    if not runs and (own := [path.name for path in runs_in(RUNS_DIRECTORY)]):
        print(
            f"\nOnly shipped runs; under {RUNS_DIRECTORY}/ there are also {', '.join(own)}: name those that are to be shown."
        )
    if made.skipped:
        print(f"\nLeft out, because the run cannot give it ({len(made.skipped)}):")
        for path, why in made.skipped[:N_NAMED]:
            print(f"  {path}: {why}")
        if len(made.skipped) > N_NAMED:
            print(f"  … and {len(made.skipped) - N_NAMED} more.")
    print(f"\nSee it:  python -m http.server --bind 127.0.0.1 --directory {directory}")
