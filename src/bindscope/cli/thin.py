"""``bindscope thin``: a run small enough to send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bindscope.errors import BindscopeError
from bindscope.runs.locate import find_run


def thin(
    run: str,
    destination: Path,
    /,
    *,
    most: int = 24,
    steps: Annotated[tuple[int, ...], Parameter(negative="")] = (),
    full: bool = False,
) -> None:
    """Copy a run with few checkpoints, in half precision.

    The copy keeps every evaluation and result, but cannot be resumed. Unless
    steps are named, checkpoints are chosen where the run changes most.

    Examples:
        bindscope thin runs/binding-laptop small/binding-laptop --most 20
        bindscope thin runs/mine small/mine --steps 0 --steps 1200 --steps 5000

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    destination
        The directory to write, which must not exist yet.
    most
        How many checkpoints to keep at most.
    steps
        Keep this checkpoint; give it once per step, instead of --most.
    full
        Keep full precision.
    """
    from bindscope.runs.directory import Run
    from bindscope.runs.thin import choose_steps, thin_run

    if most < 2:
        raise BindscopeError("--most: keep at least the first and the last checkpoint.")
    opened = Run.open(find_run(run))
    chosen = steps or choose_steps(opened, most)
    copy = thin_run(opened, destination, chosen, "float32" if full else "float16")
    size = sum(file.stat().st_size for file in copy.path.rglob("*") if file.is_file())
    print(
        f"{opened.name} with {len(copy.steps)} of {len(opened.steps)} checkpoints: {size / 1e6:.1f} MB in {copy.path}."
    )
