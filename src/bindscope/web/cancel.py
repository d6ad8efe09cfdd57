"""Work that nobody waits for any more ends at its next step.

The worker says which question it is at; whatever it calls may ask ``check_cancelled`` between two parts of long work.
``LabRun.model`` does, and so does every run of a model that it gives, so work that goes from checkpoint to checkpoint, or
runs one model again and again, needs no word of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from bindscope.errors import BindscopeError

_current: ContextVar[threading.Event | None] = ContextVar("cancelled", default=None)


class Superseded(BindscopeError):
    """A newer question took the place of this one, or who asked has left."""


@contextmanager
def cancellable(cancelled: threading.Event) -> Iterator[None]:
    """What runs inside ends at its next check once ``cancelled`` is set."""
    token = _current.set(cancelled)
    try:
        yield
    finally:
        _current.reset(token)


def check_cancelled() -> None:
    """End this work if nobody waits for it; outside a worker nothing happens."""
    cancelled = _current.get()
    if cancelled is not None and cancelled.is_set():
        raise Superseded("a newer question took the place of this one.")
