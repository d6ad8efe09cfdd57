"""Commands that heed Ctrl-C, also where the tests themselves do not."""

from __future__ import annotations

import signal


def heed_interrupts() -> None:
    """To be called in a process before its command starts: a shell lets what it starts in the background ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
