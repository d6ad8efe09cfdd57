"""How far the training behind a trajectory came: what it has not shown yet is inconclusive, not out of reach."""

from __future__ import annotations

import xarray as xr

from bindscope.studies.framework.claims import Finding, Quantity, inconclusive, not_testable

UNFINISHED = ("training", "interrupted")  # statuses of a run whose training has not ended


def tell_training(dataset: xr.Dataset) -> str:
    """How far training came, and what would bring more of it.

    >>> tell_training(trajectory)
    "training was interrupted at step 3,000 of 5,000; 'bindscope resume' goes on"
    """
    last, total, status = int(dataset.step[-1]), int(dataset.attrs["total_steps"]), dataset.attrs.get("status")
    where = f"at step {last:,} of {total:,}"
    if status == "training":
        return f"training is {where}; verify again when it has gone on"
    if status == "interrupted":
        return f"training was interrupted {where}; 'bindscope resume' goes on"
    return f"training ended {where}; train for longer, as with --set training.steps={2 * total}"


def few_evaluations(dataset: xr.Dataset, least: int, needing: str, quantities: tuple[Quantity, ...]) -> Finding | None:
    """What is said of a run with fewer than ``least`` evaluations: more may come while it trains, none when it has ended."""
    n = dataset.sizes["step"]
    if n >= least:
        return None
    few = f"the run has {n} evaluation{'s' if n != 1 else ''}; {needing} {least} or more"
    if dataset.attrs.get("status") in UNFINISHED:
        return inconclusive(f"{few}, and {tell_training(dataset)}", quantities)
    return not_testable(f"{few}, which a smaller training.evaluate_every gives", quantities)
