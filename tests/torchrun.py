"""Start a program in several processes, as torchrun does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ATTEMPTS = 3
SECONDS = 80


def run_by_torchrun(program: Path, arguments: list[str], before: Callable[[], None] = lambda: None) -> str:
    """The output of two processes that ran ``program`` to its end.

    Now and then gloo's first connection between two processes never comes about and both wait for it; then the attempt
    is ended and made again, after ``before`` has cleared away what it left.
    Likewise torch now and then aborts while a process leaves, when its work is done and the other has left already.
    """
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(program)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    for _ in range(ATTEMPTS):
        before()
        process = subprocess.Popen(
            [*launcher, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()  # torchrun ends its processes before it ends
            process.communicate()
            continue
        if process.returncode != 0 and "terminate called without an active exception" in output:
            continue
        assert process.returncode == 0, output
        return output
    raise AssertionError(f"two processes did not come to an end in {ATTEMPTS} attempts of {SECONDS} s")
