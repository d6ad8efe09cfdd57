"""``bindscope evidence``: what every verdict rests on, and training of what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from bindscope.cli.options import EACH_RUN, AtLeastOne, EachRun, Flag
from bindscope.cli.table import format_duration, format_table
from bindscope.runs.locate import RUNS_DIRECTORY
from bindscope.runs.placement import Device

if TYPE_CHECKING:
    from bindscope.studies.framework.evidence import Item


def evidence(
    *names: str,
    train: Flag = False,
    jobs: AtLeastOne = 1,
    hours: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    cluster: str | None = None,
    each_run: EachRun = EACH_RUN,
    device: Device = "cpu",
    runs: Path = RUNS_DIRECTORY,
) -> None:
    """List every run and experiment behind the verdicts, and train what is missing.

    What would change verdicts most comes first. Training can be stopped at any moment and given again: runs
    that have ended are not trained again, interrupted ones go on, and runs that ship with Bindscope count.

    Examples:
        bindscope evidence
        bindscope evidence --train --hours 8
        bindscope evidence seeds-deep held-out --train --jobs 2
        bindscope evidence --train --cluster auto --runs /shared/runs

    Parameters
    ----------
    names
        Only these runs and experiments; all of them when left out.
    train
        Train what is missing, in this order.
    jobs
        How many runs to train at once, one CPU thread each.
    hours
        Begin nothing that would not end within so many hours, by its estimated cost.
    cluster
        Train on the machines of a Ray cluster instead: its address, or auto for the one this machine belongs to.
        All must share the directory.
    device
        Where new runs are trained; auto takes a GPU when there is one. Several jobs share it.
    runs
        The directory that holds runs.
    """
    from bindscope.studies.framework.evidence import list_evidence, train_evidence
    from bindscope.training.device import select_device

    if train:
        select_device(device)
    items = list_evidence(runs, names)
    print(format_evidence(items))
    if not train:
        return
    seconds: dict[str, float] = {}
    for item, run in train_evidence(items, runs, jobs, hours, cluster, device, each_run):
        last = run.metrics[-1]
        seconds[run.name] = float(last["elapsed"])
        print(
            f"{item.name}: {run.name} ended at step {last['step']:,} after {format_duration(last['elapsed'])} "
            f"(estimated {format_duration(_estimate(item, run.name))}), saved in {run.path}",
            flush=True,
        )
    left = sum(len(item.left) for item in list_evidence(runs, names))
    print(f"{len(seconds)} runs trained; {left} are left.")


def _estimate(item: Item, name: str) -> float:
    return next(cell.seconds for cell in item.cells if cell.config.name == name)


def format_evidence(items: Sequence[Item]) -> str:
    """One row for each run or experiment, and the sum of what is left."""
    rows = [
        [
            item.name,
            item.kind,
            " ".join(item.claims) or "–",
            f"{item.n_trained} of {item.n_planned}",
            item.state,
            format_duration(item.seconds_left) if item.left else "–",
            item.wanted.settles,
        ]
        for item in items
    ]
    headings = ["evidence", "kind", "claims", "runs", "state", "left", "what all of it settles"]
    left = sum(item.seconds_left for item in items)
    cores = "with one thread on a quiet core"
    total = f"{format_duration(left)} of training are left, {cores}." if left else "Nothing is left to train."
    return f"{format_table(headings, rows, numbers=[3])}\n\n{total}"
