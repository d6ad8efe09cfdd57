"""``bindscope demo``: three minutes to see what this is about."""

from __future__ import annotations

from pathlib import Path

from bindscope.cli.locate import RUNS_DIRECTORY


def show_demo(*, open_: bool = True, train: bool = True, out: Path = RUNS_DIRECTORY) -> None:
    """Open the shipped run's report, then train a small model live.

    Examples:
        bindscope demo
        bindscope demo --no-open --no-train

    Parameters
    ----------
    open_
        Open the report in a browser; otherwise only its place is printed.
    train
        Train binding-tiny after the report.
    out
        The directory that holds runs.
    """
