"""``bindscope trajectory``: the life of a run in one figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def trajectory(
    run: str,
    /,
    *,
    out: Path | None = None,
    html: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Find a run's phases and draw its trajectory.

    Prints each phase with its steps and the criterion that found it, and saves the figure (accuracy, by depth, by root
    line, where predictions come from) and the numbers behind it as netCDF.

    Examples:
        bindscope trajectory binding-laptop
        bindscope trajectory runs/fast --out fast.pdf
        bindscope trajectory binding-laptop --html

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    out
        The figure's file; its ending chooses the format (svg, png, pdf). By default results/trajectory.svg inside the
        run, or NAME-trajectory.svg here for a shipped run.
    html
        Also write a self-contained HTML report beside the figure.
    """
