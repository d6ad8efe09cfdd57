"""Start a program in several processes, as torchrun does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ATTEMPTS = 3
SECONDS = 180  # longer than processes take to say that they did not connect


def run_by_torchrun(
    program: Path,
    arguments: list[str],
    before: Callable[[], None] = lambda: None,
    n: int = 2,
    restarts: int = 0,
) -> str:
    """The output of ``n`` processes that ran ``program`` to its end, started again up to ``restarts`` times.

    Now and then gloo's first connection between two processes never comes about and both wait for it; then the attempt
    is ended and made again, after ``before`` has cleared away what it left.
    Likewise torch now and then aborts while a process leaves, when its work is done and the other has left already.
    """
    for _ in range(ATTEMPTS):
        before()
        try:
            code, output = start_torchrun([str(program), *arguments], n, restarts, SECONDS + 60 * n)
        except subprocess.TimeoutExpired:
            continue
        if code != 0 and "terminate called without an active exception" in output:
            continue
        assert code == 0, output
        return output
    raise AssertionError(f"{n} processes did not come to an end in {ATTEMPTS} attempts")


def start_torchrun(words: list[str], n: int = 2, restarts: int = 0, seconds: float = 300) -> tuple[int, str]:
    """The exit code of torchrun and all that it and its processes said."""
    options = ["--standalone", f"--nproc-per-node={n}", f"--max-restarts={restarts}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *options, *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()  # torchrun ends its processes before it ends
        process.communicate()
        raise
    return process.returncode, output


def environment() -> dict[str, str]:
    """That of a process which imports what this one does."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
