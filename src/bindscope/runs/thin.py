"""A compact copy of a run that can be shipped: some checkpoints in half precision, no state to resume from."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable
from pathlib import Path

from bindscope.runs.directory import Run, write_empty_run
from bindscope.runs.files import explain_failure, new_directory
from bindscope.runs.weights import StorageType


def thin_run(run: Run, destination: Path | str, steps: Iterable[int | str], dtype: StorageType = "float16") -> Run:
    """Copy the manifest, all metrics and results, and the weights of ``steps``; the original is only read.

    >>> thin_run(Run.open("runs/laptop"), "demo/laptop", steps=(0, 1000, 2200, "last"))
    """
    chosen = sorted({run.find_step(step) for step in steps})
    destination = Path(destination)
    manifest = dataclasses.replace(run.manifest, thinned=True, checkpoints={})
    with new_directory(destination) as unfinished:
        write_empty_run(unfinished, manifest)
        copy = Run(unfinished, manifest)
        for record in run.metrics:
            copy.keep_evaluation(record)
        for step in chosen:
            copy.write_checkpoint(step, run.weights(step), dtype)
        with explain_failure(destination):
            for name in run.result_names:
                shutil.copyfile(run.path / "results" / f"{name}.nc", unfinished / "results" / f"{name}.nc")
    return Run.open(destination)
