"""``bindscope apply``: a saved subspace, circuit or intervention in another checkpoint or run."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bindscope.cli.options import HERE, Flag, Place
from bindscope.cli.table import format_table

if TYPE_CHECKING:
    import xarray as xr


def apply(
    file: Path,
    run: str,
    /,
    *,
    steps: Annotated[str, Parameter(name=["--steps", "--step"])] = "last",
    place: Place = HERE,
    json: Flag = False,
) -> None:
    """Apply a saved subspace, circuit or intervention to another checkpoint or run.

    The file is one that --save of 'subspace', 'circuit' or 'patch' wrote. Its pairs
    are drawn again as they were, from the run's own task, so at the checkpoint it
    comes from its saved effect comes out again. The model must have the same
    layers, heads, width and outputs. Nothing in the file is executed.

    Examples:
        bindscope apply chain.safetensors binding-plain --steps all
        bindscope apply values.safetensors runs/another-seed --json

    Parameters
    ----------
    file
        What --save wrote.
    run
        A path, a name under ./runs, or a shipped run's name.
    steps
        Which checkpoints: a step, 'first', 'last', 'all', or a list such as 0,1000,last.
    json
        Print the numbers as JSON instead of a table.
    """
    from bindscope.questions.findings import apply_finding
    from bindscope.questions.opened import Opened
    from bindscope.questions.question import to_steps

    dataset = apply_finding(file, Opened.at(run, place), to_steps(steps))
    if json:
        numbers = {str(name): values.values.tolist() for name, values in dataset.data_vars.items()}
        print(json_format.dumps({**dataset.attrs, "step": dataset.step.values.tolist(), **numbers}))
    else:
        print(format_applied(dataset))


def format_applied(dataset: xr.Dataset) -> str:
    """What was applied, and one row for each checkpoint below the saved effect."""
    attrs, names = dataset.attrs, [str(name) for name in dataset.data_vars]
    lead = f"the {attrs['kind']} of {attrs['found_on']}, found at step {attrs['found_at']:,}, in {attrs['run']}"
    rows = [["saved", *(_number(attrs.get(f"saved_{name}")) for name in names)]]
    for step in dataset.step.values:
        rows.append([f"{step:,}", *(_number(float(dataset[name].sel(step=step))) for name in names)])
    shown = format_table(["step", *(name.replace("_", " ") for name in names)], rows, numbers=range(1, len(names) + 1))
    same = f"\nstep {attrs['same_weights']} has the very weights it was found in" if attrs["same_weights"] else ""
    return f"{lead}\n\n{shown}{same}"


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.3f}"
