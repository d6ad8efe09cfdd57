"""``bindscope demo``: three minutes to see what this is about."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bindscope.cli.locate import RUNS_DIRECTORY, shipped_runs

PRESET = "binding-tiny"


def show_demo(
    *,
    open_: Annotated[bool, Parameter(name="--open")] = True,
    train: bool = True,
    steps: int | None = None,
    out: Path = RUNS_DIRECTORY,
) -> None:
    """Open the shipped runs' report, then train a small model live.

    Examples:
        bindscope demo
        bindscope demo --no-open --no-train

    Parameters
    ----------
    open_
        Open reports in a browser; otherwise only say where they are.
    train
        Train binding-tiny after the report.
    steps
        Train at most this many steps.
    out
        The directory that holds runs.
    """
    show_shipped_report(out, open_)
    if train:
        train_small_model(out, steps, open_)


def show_shipped_report(out: Path, browser: bool) -> None:
    """One report of the runs that ship with Bindscope."""
    from bindscope.cli.report import write_report
    from bindscope.runs.directory import Run

    shipped = [Run.open(path) for path in shipped_runs()]
    if not shipped:
        print("This copy of Bindscope ships no finished run; the live one follows.")
        return
    report = write_report(shipped, out / "reports" / "shipped.html", "Runs that come with Bindscope")
    print(f"Report of {' and '.join(run.name for run in shipped)}, trained before: {report}")
    open_page(report, browser)


def train_small_model(out: Path, steps: int | None, browser: bool) -> None:
    """Train the small preset under a name that is free, then report it."""
    from bindscope.cli.report import write_report
    from bindscope.cli.train import configure, start_run
    from bindscope.runs.directory import Run

    directory = find_free(out / PRESET)
    config = configure(PRESET, shorthands={"name": directory.name, "training.steps": steps})
    start_run(config, directory)
    report = write_report([Run.open(directory)], out / "reports" / f"{directory.name}.html")
    print(f"Report: {report}")
    open_page(report, browser)
    print(f"Ask it something: bindscope run {directory} 'a=5;b=a;c=3;#b:' --step all")


def find_free(path: Path) -> Path:
    """The path itself, or with -2, -3, … behind it when it is taken."""
    taken, number = path, 1
    while taken.exists():
        number += 1
        taken = path.with_name(f"{path.name}-{number}")
    return taken


def open_page(path: Path, browser: bool) -> bool:
    """Show a page in a graphical browser, where there is one."""
    graphical = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    return browser and graphical and webbrowser.open(path.resolve().as_uri())
