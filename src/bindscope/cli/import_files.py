"""``bindscope import``: checkpoints from elsewhere become a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from bindscope.cli.locate import RUNS_DIRECTORY


def import_files(
    *files: Path,
    family: Literal["assign-add", "binding", "templates"],
    as_: Annotated[str, Parameter(name="--as")],
    out: Path = RUNS_DIRECTORY,
) -> None:
    """Make a run of checkpoint files from elsewhere.

    Reads TransformerLens state dicts (.pth, tensors only: no code in them is run) and safetensors files. The step of
    each is the last number in its file name.

    Examples:
        bindscope import checkpoints/*.pth --family assign-add --as released

    Parameters
    ----------
    files
        The checkpoint files, all of one model.
    family
        The task that the model was trained on.
    as_
        The name of the new run.
    out
        The directory that holds runs.
    """
