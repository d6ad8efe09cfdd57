"""Opening a directory from the page: the one request that names a directory on the disk.

The person at the machine types where a run lies, as on a command line. What keeps anyone else from using it:

- it exists only on a server that listens on this machine alone and was not told to go without (``--no-open-directories``);
- the request must come from a page of this server and say so (``Origin``), so neither another site nor a form reaches it;
- the path is only ever asked for ``manifest.json``; the run must be one from beginning to end, or nothing of it is kept;
- whatever is not a run gives the same sentence: missing, forbidden, a file, a damaged manifest. Nothing on the disk can be
  found out, listed or read through it, except a run, which is what was asked for;
- a run that was opened this way is never written to.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import Request
from pydantic import Field
from starlette.exceptions import HTTPException

from bindscope.errors import BindscopeError
from bindscope.runs.directory import Run
from bindscope.web.body import Strict
from bindscope.web.lab import Lab, LabRun
from bindscope.web.pages.runs import DAMAGED, summarise_run
from bindscope.web.security import is_own_page

NO_RUN = "there is no run at this path; give the directory that holds a run's manifest.json."


class OpenQuestion(Strict):
    """Where a run lies, from the directory the server was started in or from the root."""

    path: Annotated[str, Field(min_length=1, max_length=4000)]


class OpenedRun(Strict):
    """The name under which a run is shown now."""

    name: str


def refuse_opening(lab: Lab, request: Request) -> None:
    """Raise unless this request may open a directory."""
    if not lab.opens_directories:
        raise HTTPException(403, "this server opens no directories from the page")
    if not is_own_page(request.headers, request.headers["host"].lower(), sure=True):
        raise HTTPException(403, "only the page itself can open a directory")


def open_directory(lab: Lab, text: str) -> OpenedRun:
    """Show the run in this directory too."""
    try:
        run = LabRun(Run.open(Path(text).expanduser(), lab.placement), lab.kept_in, read_only=True)
        run.remember("summary", partial(summarise_run, run))  # every file of it can be read
    except (BindscopeError, *DAMAGED):
        raise BindscopeError(NO_RUN) from None
    return OpenedRun(name=lab.add(run))
