"""What commands that measure a binding run share: opening it, a progress bar, and one file of numbers or a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError
from bindscope.runs.locate import SHIPPED_DIRECTORY, find_run
from bindscope.runs.placement import CPU, Placement

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.directory import Run

ENDINGS = ("svg", "pdf", "png", "nc")
NUMBERS = ".nc"


def open_binding_run(name: str, placement: Placement = CPU) -> tuple[Any, Any]:
    """The run and its task, which must be of the binding family."""
    from bindscope.runs.directory import Run

    opened = Run.open(find_run(name), placement)
    return opened, binding_task(opened)


def binding_task(run: Run) -> Any:
    """The run's task, which must be one with programs."""
    from bindscope.questions.opened import require_kind

    return require_kind(run, "programs")


def check_out(out: Path | None) -> None:
    """Refuse a file name before anything is computed for it."""
    if out is None:
        return
    ending = out.suffix.removeprefix(".").lower()
    if ending not in ENDINGS:
        raise BindscopeError(f"--out {out}: unknown ending '{ending}'; use one of {', '.join(ENDINGS)}.")
    if SHIPPED_DIRECTORY.resolve() in out.resolve().parents:
        raise BindscopeError(f"--out {out}: shipped runs are not written into; choose another directory.")


def write_out(dataset: xr.Dataset, out: Path, figure: Any) -> Path:
    """The figure, or without one the numbers, written whole or not at all."""
    if figure is not None:
        from bindscope.studies.plots.style import save_figure

        return save_figure(figure, out)
    from bindscope.runs.results import write_dataset

    return write_dataset(out, dataset)


def figure_or_none(out: Path, summary: Any, metric: str, title: str) -> Any:
    """The figure of a summary, or None for a file of numbers."""
    if out.suffix.lower() == NUMBERS:
        return None
    from bindscope.studies.plots.outcomes import figure_summary

    return figure_summary(summary, metric, title)


@contextmanager
def show_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error that goes when it is done; nothing where nobody watches."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)
