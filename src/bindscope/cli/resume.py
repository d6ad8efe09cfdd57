"""``bindscope resume``: an interrupted run goes on."""

from __future__ import annotations

from bindscope.cli.launch import launch, launches
from bindscope.cli.options import Device, Flag
from bindscope.cli.train import continue_run


def resume(
    run: str,
    /,
    *,
    device: Device | None = None,
    threads: int | None = None,
    any_world_size: Flag = False,
    processes: int = 1,
    restarts: int = 0,
) -> int | None:
    """Continue an interrupted run exactly where it was.

    On a CPU with the same number of threads and processes the finished run is
    the same, bit for bit, as one that was never stopped.

    Examples:
        bindscope resume binding-tiny
        bindscope resume runs/fast --threads 2
        bindscope resume runs/large --processes 4 --restarts 3

    Parameters
    ----------
    run
        The run to continue: a path, or a name under ./runs.
    device
        Where to train; where it began when left out.
    threads
        How many CPU threads to use; as many as it began with when left out.
    any_world_size
        Also go on with another number of processes than began it, which ends with slightly different weights.
    processes
        How many processes of this machine train it together: as many as began it.
    restarts
        How often they are started again when one is lost; training goes on from its last saved state.
    """
    if launches(processes, restarts):
        return launch(processes, restarts)
    continue_run(run, device, threads, any_world_size)
    return None
