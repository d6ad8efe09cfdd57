"""``bindscope grids``: patch grids of every pair at every checkpoint, file by file."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.asking import asking
from bindscope.cli.effects import format_summary, summary_to_json
from bindscope.cli.options import HERE, Cluster, Flag, Jobs, Place
from bindscope.cli.outcome import check_out, figure_or_none, show_progress, write_out
from bindscope.questions.grids import Grids, GridSeries
from bindscope.questions.opened import Opened
from bindscope.runs.locate import is_shipped, results_folders

if TYPE_CHECKING:
    from bindscope.runs.directory import Run


@asking(Grids)
def grids(
    question: Grids,
    /,
    *,
    jobs: Jobs = None,
    cluster: Cluster = None,
    place: Place = HERE,
    out: Path | None = None,
    json: Flag = False,
) -> None:
    """Patch every cell of every pair at every checkpoint, into a series of files that grows.

    Each checkpoint is a file in results/grid-series of the run, or of
    runs/verify-NAME for a shipped one, with every pair and the means over pairs.
    Memory holds one checkpoint's pairs, however many checkpoints there are; the
    page and Python read the series while it grows. Stopped at any moment it goes
    on where it was; a damaged file is named and measured again.

    Examples:
        bindscope grids binding-laptop
        bindscope grids binding-deep --n 1000 --jobs 2
        bindscope grids binding-laptop --grid heads --steps 0,1000,last --out heads.svg
        bindscope grids runs/mine --n 1000 --cluster auto

    Parameters
    ----------
    out
        Also write the means as a figure (.svg, .pdf, .png), or their numbers (.nc).
    json
        Print the means, and where the series is, as JSON instead of a table.
    """
    from bindscope.cli.failure import Interrupted

    check_out(out)
    opened = Opened.at(question.run, place)
    folders = _folders_of(opened.run)
    try:
        with show_progress("checkpoints") as on_progress:
            found = question.answer(opened, folders, jobs, cluster, on_progress)
    except KeyboardInterrupt:
        kept = question.find(opened, folders)
        message = (
            f"interrupted; {len(kept.steps)} checkpoints are saved in {kept.series.folder}, give the command again."
        )
        raise Interrupted(message) from None
    summary = found.summary(opened.find_steps(question.steps))
    if json:
        cells = summary_to_json(summary, "success", summary.attrs)
        print(json_format.dumps({**cells, **_to_mapping(found)}))
    else:
        title = f"{opened.name}, {question.grid}: success over {summary.attrs['pairs']}; {question.direction}"
        print(f"{title}\n\n{format_summary(summary, 'success')}\n\n{_describe(found)}")
    if out is not None:
        figure = figure_or_none(out, summary, "success", f"{opened.name}, {question.grid}")
        path = write_out(summary, out, figure)
        if not json:
            print(f"written  {path}")


def _folders_of(run: Run) -> tuple[Path, ...]:
    return results_folders(run.path, run.name, is_shipped(run.path), placement=run.placement)


def _describe(found: GridSeries) -> str:
    read = len(found.steps) - len(found.measured)
    n_bytes = sum(found.series.path(step).stat().st_size for step in found.steps)
    size = f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.0f} kB"
    lines = [
        f"saved    {found.series.folder}: {len(found.steps)} checkpoints, {size}; measured {len(found.measured)} now"
    ]
    lines[0] += f", {read} before" if read else ""
    return "\n".join([*lines, *(f"note     {note}" for note in found.notes)])


def _to_mapping(found: GridSeries) -> dict[str, object]:
    return {
        "folder": str(found.series.folder),
        "steps": list(found.steps),
        "measured": list(found.measured),
        "notes": list(found.notes),
    }
