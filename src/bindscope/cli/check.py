"""``bindscope check``: is everything on disk what was written?"""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING

from bindscope.cli.failure import OK, REFUSED
from bindscope.cli.options import Flag
from bindscope.runs import locate
from bindscope.runs.locate import RUNS_DIRECTORY

if TYPE_CHECKING:
    from bindscope.runs.check import Checked


def check(*names: str, json: Flag = False) -> int:
    """Read every file of runs and datasets, and name what is damaged.

    Weights, evaluations, manifests, results and the state to resume from carry hashes, and are
    refused wherever they are read when they differ. This reads all of them at
    once, changes nothing, and ends with exit code 2 when something is damaged.

    Examples:
        bindscope check
        bindscope check binding-plain runs/mine
        bindscope check runs/experiment-seeds

    Parameters
    ----------
    names
        Runs, by path or name, datasets (.nc), or folders of both; ./runs and all that is shipped when left out.
    json
        One JSON object for each run or dataset.
    """
    from rich.console import Console

    from bindscope.runs.check import check_folder

    places = [_find(name) for name in names] or [RUNS_DIRECTORY, locate.SHIPPED_DIRECTORY]
    n_damaged = n_files = 0
    with Console(stderr=True).status("") as status:
        for place in places:
            for found in check_folder(place, lambda path: status.update(f"reading {path}")):
                n_files, n_damaged = n_files + found.n_files, n_damaged + len(found.damaged)
                print(json_format.dumps(to_mapping(found)) if json else "\n".join(describe(found)))
    if not json:
        print(f"\n{n_files} file{'' if n_files == 1 else 's'} read, {n_damaged or 'none'} damaged.")
    return REFUSED if n_damaged else OK


def to_mapping(found: Checked) -> dict[str, object]:
    return {"path": str(found.path), "files": found.n_files, "damaged": found.damaged, "notes": found.notes}


def describe(found: Checked) -> list[str]:
    """A line for each thing that was found, or one that says that nothing was."""
    lines = [f"damaged  {sentence}" for sentence in found.damaged] + [f"note     {note}" for note in found.notes]
    if found.damaged:
        return lines
    return [f"whole    {found.path}: {found.n_files} file{'s' if found.n_files > 1 else ''}", *lines]


def _find(name: str) -> Path:
    path = Path(name)
    if path.is_dir() or (path.suffix == ".nc" and path.is_file()):
        return path
    return locate.find_run(name)
