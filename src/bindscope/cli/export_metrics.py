"""``bindscope export-metrics``: a run's evaluations for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from bindscope.runs.locate import find_run


def export_metrics(
    run: str,
    out: Path,
    /,
    *,
    to: Annotated[Literal["tensorboard", "csv", "wandb"], Parameter(name="--to")] = "tensorboard",
) -> None:
    """Write a run's evaluations for TensorBoard, Weights & Biases, or as CSV.

    Every number of metrics.jsonl becomes one series, named by the way to it:
    test/accuracy, test/accuracy_by_depth/0. CSV and TensorBoard files need nothing
    installed. For Weights & Biases, wandb must be; an offline run is written,
    which 'wandb sync' uploads.

    Examples:
        bindscope export-metrics binding-laptop logs/binding-laptop
        bindscope export-metrics runs/fast fast.csv --to csv
        bindscope export-metrics runs/fast wandb-runs --to wandb

    Parameters
    ----------
    run
        A path, a name under ./runs, or a shipped run's name.
    out
        The directory to write into, or the file for csv. An earlier export of the same name is replaced.
    to
        What reads it.
    """
    from bindscope.runs import exchange
    from bindscope.runs.directory import Run

    write = {"tensorboard": exchange.write_tensorboard, "csv": exchange.write_csv, "wandb": exchange.log_to_wandb}[to]
    opened = Run.open(find_run(run))
    path = write(opened, out)
    print(f"{opened.name}: {len(opened.metrics)} evaluations written to {path}")
    if to == "tensorboard":
        print(f"look at them with: tensorboard --logdir {out}")
    if to == "wandb":
        print(f"upload them with: wandb sync {out}/wandb/offline-run-*")
