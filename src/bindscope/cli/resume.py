"""``bindscope resume``: an interrupted run goes on."""

from __future__ import annotations

from bindscope.cli.options import Device
from bindscope.cli.train import continue_run


def resume(run: str, /, *, device: Device | None = None, threads: int | None = None) -> None:
    """Continue an interrupted run exactly where it was.

    On a CPU with the same number of threads the finished run is the same, bit
    for bit, as one that was never stopped.

    Examples:
        bindscope resume binding-tiny
        bindscope resume runs/fast --threads 2

    Parameters
    ----------
    run
        The run to continue: a path, or a name under ./runs.
    device
        Where to train; where it began when left out.
    threads
        How many CPU threads to use; as many as it began with when left out.
    """
    continue_run(run, device, threads)
