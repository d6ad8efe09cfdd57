"""``--processes``: a command starts itself in several processes of this machine, as torchrun does, and ends as they do.

torchrun answers a failed process with a traceback and exit code 1. Here the sentence that the processes said stands last,
and the exit code is theirs.
"""

from __future__ import annotations

import logging
import os
import sys
import uuid

from bindscope.cli.failure import INTERRUPTED, REFUSED, Interrupted
from bindscope.cli.one_voice import started_by_torchrun
from bindscope.errors import BindscopeError


def launches(processes: int, restarts: int) -> bool:
    """Whether this process is to start the others; false in one of those, or where one process is asked for."""
    if processes < 1:
        raise BindscopeError(f"--processes: must be at least 1, got {processes}.")
    if restarts < 0:
        raise BindscopeError(f"--restarts: must not be negative, got {restarts}.")
    if processes == 1 and restarts:
        raise BindscopeError(
            "--restarts: only with --processes 2 or more is there something that starts a process again."
        )
    return processes > 1 and not started_by_torchrun()


def launch(processes: int, restarts: int) -> int:
    """Run this very command in so many processes, started again together up to ``restarts`` times; their exit code."""
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # each; --threads says otherwise
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "bindscope", *sys.argv[1:])
    except ChildFailedError as failed:
        rank, failure = failed.get_first_failure()
        if failure.exitcode in (REFUSED, INTERRUPTED):
            return failure.exitcode
        how = failure.signal_name() if failure.exitcode < 0 else f"exit code {failure.exitcode}"
        raise BindscopeError(
            f"process {rank} of {processes} was lost ({how}), and was started again {restarts} times; what was saved "
            "remains, go on with 'bindscope resume'."
        ) from None
    except SignalException as told:
        raise Interrupted(f"stopped by {told.sigval.name}; go on with 'bindscope resume'.") from None
    return 0
