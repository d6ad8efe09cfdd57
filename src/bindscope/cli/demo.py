"""``bindscope demo``: three minutes to see what this is about."""

from __future__ import annotations

import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.serve import open_lab, open_page, served
from bindscope.runs.locate import RUNS_DIRECTORY, shipped_runs
from bindscope.runs.placement import Placement
from bindscope.web.beside import beside

PRESET = "binding-tiny"


def show_demo(
    *,
    open_: Annotated[bool, Parameter(name="--open")] = True,
    train: bool = True,
    once: Flag = False,
    steps: int | None = None,
    place: Place = HERE,
    out: Path = RUNS_DIRECTORY,
) -> None:
    """Open the page with the shipped runs, and train a small model live in it.

    Ctrl-C ends both; the training can be resumed. It takes place on --device, in
    float32 whatever --dtype is: that is for the models that the page asks.

    Examples:
        bindscope demo
        bindscope demo --no-open --no-train
        bindscope demo --once --no-open

    Parameters
    ----------
    open_
        Open the page in a browser; otherwise only say where it is.
    train
        Train binding-tiny meanwhile.
    once
        Without the page: write reports of the shipped runs and of the trained one as HTML files, then end.
    steps
        Train at most this many steps.
    out
        The directory that holds runs.
    """
    if steps is not None:
        from bindscope.cli.train import configure

        configure(PRESET, shorthands={"training.steps": steps})  # refused before anything is served or written
    placement = place.check()
    if once:
        show_shipped_report(out, open_, placement)
        if train:
            train_small_model(out, steps, open_, placement)
    else:
        show_live(out, steps, open_, train, placement)


def show_live(out: Path, steps: int | None, browser: bool, train: bool, placement: Placement) -> None:
    """The page with everything in it, and a small model that learns while it is looked at."""
    from bindscope.web.server import wait_for_interrupt

    with served(open_lab(kept_in=out, placement=placement)) as address:
        try:
            print(f"Bindscope is at {address} (Ctrl-C ends it)", flush=True)
            open_page(address, browser)
            if train:
                directory = find_free(out / PRESET)
                print(f"Watch {directory.name} learn: {address}#/1/runs?run={directory.name}", flush=True)
                with training(directory, steps, placement) as process:
                    process.wait()
                print(f"The page stays at {address} until Ctrl-C.", flush=True)
            wait_for_interrupt()
        except KeyboardInterrupt:
            print("\nStopped.", flush=True)


def training(
    directory: Path, steps: int | None, placement: Placement
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """The small preset learns in a process of its own, one thread wide; leaving the block early stops it, resumably."""
    words = ["train", PRESET, "--name", directory.name, "--out", str(directory.parent), "--threads", "1"]
    return beside(*words, "--device", placement.device, *(() if steps is None else ("--steps", str(steps))))


def show_shipped_report(out: Path, browser: bool, placement: Placement) -> None:
    """One report of the runs that ship with Bindscope."""
    from bindscope.cli.report import write_report
    from bindscope.runs.directory import Run

    shipped = [Run.open(path, placement) for path in shipped_runs()]
    if not shipped:
        print("This copy of Bindscope ships no finished run; the live one follows.")
        return
    report = write_report(shipped, out / "reports" / "shipped.html", "Runs that come with Bindscope")
    print(f"Report of {' and '.join(run.name for run in shipped)}, trained before: {report}")
    open_page(report.resolve().as_uri(), browser)


def train_small_model(out: Path, steps: int | None, browser: bool, placement: Placement) -> None:
    """Train the small preset under a name that is free, then report it."""
    from bindscope.cli.report import write_report
    from bindscope.cli.train import configure, start_run
    from bindscope.runs.directory import Run

    directory = find_free(out / PRESET)
    config = configure(PRESET, shorthands={"name": directory.name, "training.steps": steps})
    start_run(config, directory, placement.device)
    report = write_report([Run.open(directory, placement)], out / "reports" / f"{directory.name}.html")
    print(f"Report: {report}")
    open_page(report.resolve().as_uri(), browser)
    print(f"Ask it something: bindscope predict {directory} 'a=5;b=a;c=3;#b:' --step all")


def find_free(path: Path) -> Path:
    """The path itself, or with -2, -3, … behind it when it is taken."""
    taken, number = path, 1
    while taken.exists():
        number += 1
        taken = path.with_name(f"{path.name}-{number}")
    return taken
