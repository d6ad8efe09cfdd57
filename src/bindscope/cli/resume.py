"""``bindscope resume``: an interrupted run goes on."""

from __future__ import annotations

from bindscope.cli.display import watch_training
from bindscope.cli.options import Device
from bindscope.cli.train import describe_run, report_end, resumable
from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run, is_shipped


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


def continue_run(name: str, device: Device | None = None, threads: int | None = None) -> None:
    """Find a run by name and train it to its end, on show."""
    from bindscope.runs.directory import Run
    from bindscope.runs.execute import resume_run

    run = Run.open(find_run(name))
    if is_shipped(run.path):
        raise BindscopeError(f"{run.name} is a finished run that comes with Bindscope; train your own to continue it.")
    if run.status in ("finished", "stopped early"):
        print(f"{run.path} is complete ({run.status}); nothing to do.")
        return
    past = [(record["step"], record) for record in run.metrics]
    with resumable(run.path), watch_training(describe_run(run.config, run.path), past) as observer:
        run = resume_run(run.path, device=device, threads=threads, observer=observer)
    report_end(run)
