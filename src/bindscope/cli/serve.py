"""``bindscope serve``: the web page, on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from bindscope.cli.options import HERE, Place
from bindscope.errors import BindscopeError
from bindscope.runs.locate import CONSTRUCTED_NAME, RUNS_DIRECTORY, find_run, is_shipped, runs_in, shipped_runs
from bindscope.runs.placement import CPU, Placement
from bindscope.web.beside import beside

if TYPE_CHECKING:
    from bindscope.web.lab import Lab

NOT_BUILT = (
    "the page was not built in this copy of Bindscope; 'make demo' or 'pip install .' in its directory builds it."
)


def serve(
    *runs: str,
    port: Annotated[int | None, Parameter(validator=Number(gte=1, lte=65535))] = None,
    host: str = "127.0.0.1",
    allow_host: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    open_: Annotated[bool, Parameter(name="--open")] = True,
    live: bool = True,
    open_directories: bool = True,
    ideal: bool = True,
    place: Place = HERE,
) -> None:
    """Show runs in a web page, and let it question their models live.

    The page answers on this machine alone and asks nothing of the network. Runs
    that are being trained grow in it; Ctrl-C ends it. Without RUNS the ideal
    mechanism joins the learned ones: a transformer whose weights are written.

    Examples:
        bindscope serve
        bindscope serve binding-laptop runs/fast --port 9000
        bindscope serve experiments --no-open
        bindscope serve --host 0.0.0.0 --allow-host lab.example.org --no-live

    Parameters
    ----------
    runs
        Paths, names under ./runs, names of shipped runs, or directories that hold runs. Everything under ./runs and the
        shipped runs when left out.
    port
        The port; 8420 when left out, or the next one that is free.
    host
        The address to listen at. Any but this machine's own needs --allow-host.
    allow_host
        A name under which the page may be asked for besides localhost; give it once per name.
    open_
        Open the page in a browser.
    live
        Answer questions to models; otherwise only what is stored is shown.
    open_directories
        Let the page open further runs by their directory; never when others can reach it.
    ideal
        Without RUNS, write the ideal mechanism to ./runs if it is not there ('bindscope construct' does the same).
    """
    from bindscope.web.server import wait_for_interrupt

    lab = open_lab(runs, live=live, placement=place.check())
    with served(lab, host, port, allow_host, opens_directories=open_directories) as address:
        try:
            print(f"Bindscope is at {address} (Ctrl-C ends it)", flush=True)
            open_page(address, open_)
            with constructing() if ideal and live and not runs else nullcontext():
                wait_for_interrupt()
        except KeyboardInterrupt:
            print("\nStopped.", flush=True)


@contextmanager
def constructing(out: Path = RUNS_DIRECTORY) -> Iterator[None]:
    """The ideal mechanism is written meanwhile, unless it is there; the page shows it when it is complete."""
    if (out / CONSTRUCTED_NAME).exists():
        yield
        return
    with beside("construct", "--out", str(out), patience=0.5, stdout=subprocess.DEVNULL):
        yield


def open_lab(
    names: Sequence[str] = (), live: bool = True, kept_in: Path = RUNS_DIRECTORY, placement: Placement = CPU
) -> Lab:
    """The runs a person names; without names the shipped ones and all that are, or come to be, under ``kept_in``."""
    from bindscope.web.lab import Lab

    if not names:
        shipped = shipped_runs()
        return Lab.open(shipped, kept_in, read_only=shipped, live=live, watched=[kept_in], placement=placement)
    folders = [Path(name) for name in names if is_collection(Path(name))]
    paths = [find_run(name) for name in names if not is_collection(Path(name))]
    guarded = filter(is_shipped, paths)
    return Lab.open(paths, kept_in, read_only=guarded, live=live, watched=folders, placement=placement)


def is_collection(directory: Path) -> bool:
    """Whether a directory holds runs and is none itself."""
    return not (directory / "manifest.json").exists() and bool(runs_in(directory))


@contextmanager
def served(
    lab: Lab,
    host: str = "127.0.0.1",
    port: int | None = None,
    names: Sequence[str] = (),
    opens_directories: bool = True,
) -> Iterator[str]:
    """The lab's page at an address, for as long as the block lasts."""
    from bindscope.web.app import create_app, static_directory
    from bindscope.web.security import LOOPBACK, host_of
    from bindscope.web.server import address_of, ended_politely, is_loopback, listen, serving

    if not (static_directory() / "index.html").is_file():
        raise BindscopeError(NOT_BUILT)
    for name in names:
        if host_of(name.lower()) != name.lower():
            raise BindscopeError(f"--allow-host {name}: give a name such as lab.example.org, without a port.")
    private = is_loopback(host)
    if not private and not names:
        raise BindscopeError(f"--host {host} lets others reach this page; name the host they use with --allow-host.")
    app = create_app(
        lab,
        hosts=(*LOOPBACK, *names),
        opens_directories=opens_directories and private,
        starts_work=private and not names,
    )
    with ended_politely(), serving(app, listening := listen(host, port)):
        if not private:
            warning = f"everyone who can reach {host} can read these runs" + (
                " and let this machine compute." if lab.live else "."
            )
            print(f"bindscope: {warning}", file=sys.stderr)
        name_unreadable(lab)
        yield address_of(listening, None if private else names[0])


def name_unreadable(lab: Lab) -> None:
    """Say of each run that is here and cannot be shown why not."""
    from bindscope.web.pages.runs import list_runs

    lab.look()
    for problem in list_runs(lab).problems:
        print(f"bindscope: not shown: {problem}", file=sys.stderr)


def open_page(address: str, browser: bool) -> bool:
    """Show an address in a graphical browser, where there is one."""
    return browser and has_screen() and webbrowser.open(address)


def has_screen() -> bool:
    """Whether a browser that is started here would be seen."""
    return sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
