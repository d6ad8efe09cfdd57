"""Started by torchrun, or by ``--processes``: the command, in which one process is lost in the middle of a run.

The arguments: the rank of the process, the step before which it is lost in the first attempt, and those of the command.
"""

from __future__ import annotations

import os
import signal
import sys

from bindscope.cli.main import run
from bindscope.training import loop


def lose(rank: str, step: int, name: str) -> None:
    """End this process without a word, if it is the one, before the step of the run of this name."""
    if os.environ["RANK"] != rank or os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
        return
    update = loop._Training.update

    def update_or_end(training) -> None:
        if training.keeper.name == name and training.tally.step == step:
            os.kill(os.getpid(), signal.SIGKILL)
        update(training)

    loop._Training.update = update_or_end


if __name__ == "__main__":
    rank, step, *arguments = sys.argv[1:]
    lose(rank, int(step), "lost")
    for name in ("whole", "lost"):
        code = run(["train", *arguments, "--name", name])
        if code:
            sys.exit(code)
