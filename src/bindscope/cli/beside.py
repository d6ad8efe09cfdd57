"""A second command that runs while a first one goes on: training in a demo, writing the ideal mechanism while serving."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NICENESS = 10  # it gives way to whoever reads the page
PATIENCE = 20.0  # seconds that it is given to stop


@contextmanager
def beside(*words: str, patience: float = PATIENCE, stdout: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """``bindscope WORDS`` in a process of its own; leaving the block early stops it.

    It is the head of its own group of processes, so that Ctrl-C reaches it once, from here.
    """
    process = subprocess.Popen([sys.executable, "-m", "bindscope", *words], process_group=0, stdout=stdout)
    try:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        yield process
    finally:
        stop(process, patience)


def stop(process: subprocess.Popen[bytes], patience: float) -> None:
    """As Ctrl-C does, and more firmly if that is not heard."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
