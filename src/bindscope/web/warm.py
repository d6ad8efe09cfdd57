"""What is done before the first reader comes, so that nothing waits for it: the list of runs, torch, and one model."""

from __future__ import annotations

from contextlib import suppress

from bindscope.errors import BindscopeError
from bindscope.web.lab import Lab
from bindscope.web.live import Worker
from bindscope.web.page import Page
from bindscope.web.stored import Stored


def warm_up(lab: Lab, stored: Stored, worker: Worker, pages: tuple[Page, ...]) -> None:
    """Make what every reader needs now; let the worker load what every question needs in the background."""
    for resource in (resource for page in pages for resource in page.resources if resource.at_once):
        with suppress(BindscopeError):
            stored.read(resource, {})
    if lab.live:
        worker.warm(lambda: load_first_model(lab))


def load_first_model(lab: Lab) -> None:
    """The last checkpoint of the first run, which is the first to be asked; this also imports torch."""
    for run in list(lab.runs.values())[:1]:
        with suppress(BindscopeError):
            run.model(run.find_step("last"))
