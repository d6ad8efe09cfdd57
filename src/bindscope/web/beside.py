"""A second command that runs while a first one goes on: training in a demo, measuring while the page is read.

It ends with the first one, however that ends (``cli/beside.py``).
"""

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
    """``bindscope WORDS`` in a process of its own; leaving the block early stops it."""
    with begin(*words, stdout=stdout) as process:
        try:
            yield process
        finally:
            stop(process, patience)


def begin(*words: str, stdout: int | None = None, stderr: int | None = None) -> subprocess.Popen[bytes]:
    """``bindscope WORDS`` in a process of its own.

    It is the head of its own group of processes, so that Ctrl-C reaches it once, from here.
    """
    command = [sys.executable, "-m", "bindscope.cli.beside", *words]
    process = subprocess.Popen(command, process_group=0, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    return process


def stop(process: subprocess.Popen[bytes], patience: float = PATIENCE) -> None:
    """As Ctrl-C does, and more firmly if that is not heard."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
