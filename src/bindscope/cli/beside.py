"""A second command that runs while a first one goes on: training in a demo, writing the ideal mechanism while serving.

It ends with the first one, however that ends: the system closes the pipe that it has in place of a keyboard.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NICENESS = 10  # it gives way to whoever reads the page
PATIENCE = 20.0  # seconds that it is given to stop


@contextmanager
def beside(*words: str, patience: float = PATIENCE, stdout: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """``bindscope WORDS`` in a process of its own; leaving the block early stops it.

    It is the head of its own group of processes, so that Ctrl-C reaches it once, from here.
    """
    command = [sys.executable, "-m", "bindscope.cli.beside", *words]
    with subprocess.Popen(command, process_group=0, stdin=subprocess.PIPE, stdout=stdout) as process:
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


def _end_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    from bindscope.cli.main import main

    threading.Thread(target=_end_with_input, name="end", daemon=True).start()
    main()
