"""Which directory a person means by RUN: a path, a name under ./runs, or the name of a shipped run."""

from __future__ import annotations

from pathlib import Path

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.runs.placement import CPU, Placement

RUNS_DIRECTORY = Path("runs")
SHOWN_FIRST = "binding-neutral"
CONSTRUCTED_NAME = "binding-constructed"  # of the run that 'bindscope construct' writes
SHIPPED_DIRECTORY = Path(__file__).parent.parent / "shipped"
MANIFEST = "manifest.json"
RESULTS = "results"  # the folder of a run that holds what was measured of it


def find_run(name: str) -> Path:
    """The directory of a run.

    >>> find_run("binding-laptop")
    PosixPath('.../bindscope/shipped/binding-laptop')
    """
    for path in (Path(name), RUNS_DIRECTORY / name, SHIPPED_DIRECTORY / name):
        if (path / MANIFEST).is_file():
            return path
    if Path(name).exists():
        raise BindscopeError(f"{name} is not a run: it has no {MANIFEST}.")
    if name == CONSTRUCTED_NAME:
        raise BindscopeError(f"there is no run '{name}' here yet; write it with 'bindscope construct'.")
    known = sorted({run.name for run in (*runs_in(RUNS_DIRECTORY), *shipped_runs())})
    hint = suggest_nearest(name, known) if known else " Train one with 'bindscope train binding-tiny'."
    raise BindscopeError(f"there is no run '{name}', neither as a path nor under {RUNS_DIRECTORY}/.{hint}")


def runs_in(directory: Path) -> list[Path]:
    """The runs directly inside a directory, by name."""
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if (path / MANIFEST).is_file())


def shipped_runs() -> list[Path]:
    """The runs that come with the package: the one that is shown first, then the others by name."""
    return sorted(runs_in(SHIPPED_DIRECTORY), key=lambda path: (path.name != SHOWN_FIRST, path.name))


def is_shipped(directory: Path) -> bool:
    """Whether a run belongs to the installed package and so must not be written to."""
    return SHIPPED_DIRECTORY.resolve() in directory.resolve().parents


def results_folders(
    directory: Path,
    name: str,
    read_only: bool,
    runs: Path = RUNS_DIRECTORY,
    out: Path | None = None,
    placement: Placement = CPU,
) -> tuple[Path, ...]:
    """Where results of a run are: new ones are saved in the first folder, which is in ``out`` if given; all are read.

    >>> results_folders(Path("shipped/binding-laptop"), "binding-laptop", read_only=True)
    (PosixPath('runs/verify-binding-laptop/results'), PosixPath('shipped/binding-laptop/results'))
    """
    inside = directory / RESULTS / placement.results_in
    if out is None and not read_only:
        return (inside,)
    first = study_results(name, runs, out) / placement.results_in
    return (first,) if first.resolve() == inside.resolve() else (first, inside)


def study_results(name: str, runs: Path = RUNS_DIRECTORY, out: Path | None = None) -> Path:
    """Where results of something that cannot be written to are: of a study without runs, or of a shipped run."""
    return (out or runs / f"verify-{name}") / RESULTS
