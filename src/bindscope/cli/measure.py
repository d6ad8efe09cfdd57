"""``bindscope measure``: results of a run by their names, as pages and figures read them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.options import HERE, Cluster, Jobs, Place
from bindscope.errors import BindscopeError

if TYPE_CHECKING:
    from bindscope.studies.framework.results import OnProgress, Result
    from bindscope.studies.framework.together import OnResult


def measure(
    run: str,
    /,
    *results: str,
    jobs: Jobs = None,
    cluster: Cluster = None,
    place: Place = HERE,
    out: Path | None = None,
) -> None:
    """Measure results of a run by name and save them, as pages and figures read them.

    Where a panel says that something is not measured yet, this command measures
    it; so does the panel's own button. What is saved already is not measured again.
    Without RESULTS the names are listed, with what is saved of each.

    Examples:
        bindscope measure binding-laptop
        bindscope measure binding-laptop chain grids
        bindscope measure runs/fast mixture --jobs 2

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    results
        Names of results. A result that another one needs is measured first.
    out
        The directory that gets results/: the run itself when left out, or runs/verify-NAME for a shipped run.
    """
    from bindscope.cli.verify import open_run_library
    from bindscope.studies.framework.verify import fill_results

    library, _ = open_run_library(run, placement=place, out=out)
    if not results:
        for name, result in library.results.items():
            print(f"{name:24s} {_state(library.find(name)):18s} {result.title}")
        return
    library.order(results)  # a name that is unknown is refused before anything is measured
    with say_progress() as on_result:
        filled = fill_results(results, library, on_result, jobs, cluster)
    for name in results:
        if filled[name].dataset is not None:
            print(f"{name}: {filled[name].path or 'needs no file'}")
    reasons = [f"{name}: {filled[name].reason}" for name in results if filled[name].dataset is None]
    if reasons:
        raise BindscopeError(" ".join(reasons))


def _state(filled: object) -> str:
    if filled is None:
        return "not measured"
    return "saved" if getattr(filled, "dataset", None) is not None else "cannot be measured"


@contextmanager
def say_progress() -> Iterator[OnResult]:
    """A bar for who watches a terminal; for anyone else a line whenever another percent is done."""
    from bindscope.cli.verify import watch_results

    if sys.stderr.isatty():
        with watch_results() as watch:
            yield watch
        return
    said = -1

    def say(result: Result, part: float) -> None:
        nonlocal said
        if (percent := int(100 * part)) > said:
            said = percent
            print(f"{percent} %  {result.title}", flush=True)

    def follow(result: Result, index: int, total: int) -> OnProgress:
        say(result, index / total)
        return lambda done, of: say(result, (index + done / max(of, 1)) / total)

    yield follow
