"""Every kind of file damaged in every way: it is named by ``bindscope check``, never used, and the rest is still read."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.runs.check import check_folder
from bindscope.runs.directory import Run
from bindscope.runs.results import read_result, write_dataset
from bindscope.runs.series import Series
from damage import KINDS, damage_file
from faults.children import start
from faults.kills import Tally

N_FLIPS = 25  # of every file
KEY = "made of this"
STATE, INDEX = "optimizer/step_00000024.safetensors", "optimizer/latest.json"
RESULT, SERIES, DATASET = "results/chain.nc", "results/grid-series/heads/step_00000024.nc", "experiment.nc"
FILES = (
    "manifest.json",
    "metrics.jsonl",
    "checkpoints/step_00000024.safetensors",
    STATE,
    INDEX,
    RESULT,
    SERIES,
    DATASET,
)
WHOLE_IN_ITSELF = {
    RESULT,
    SERIES,
    DATASET,
}  # nothing names them: another's is read, and whoever wants one compares its key


def damage_everything(trained: Path, folder: Path, rng: random.Random, tally: Tally) -> None:
    """Damage copies of a run file by file."""
    one, other = folder / "one", folder / "other"
    _furnish(shutil.copytree(trained, one), 1)
    other_runs = folder / "others"
    other_runs.mkdir()
    from faults.commands import TRAIN

    child = start([*TRAIN, "--seed", "5"], other_runs)
    tally.expect(child.wait() == 0, child.said.read_text())
    _furnish(shutil.copytree(other_runs / "run", other), 2)
    whole = {file: read(one, file) for file in FILES}
    for file in FILES:
        for kind in KINDS:
            for _ in range(N_FLIPS if kind == "bit flipped" else 1):
                copy = shutil.copytree(one, folder / "damaged")
                damage_file(copy / file, kind, other / file, rng)
                _expect_named(copy, file, kind, whole, tally)
                shutil.rmtree(copy)


def _furnish(run: Path, value: int) -> None:
    """A result, a file of a series and a dataset of an experiment, each of this run's own numbers."""
    numbers = xr.Dataset({"success": (("pair", "layer"), value / np.arange(1.0, 25).reshape(6, 4))})
    Run.open(run).save_result("chain", numbers)
    Series(run / "results/grid-series/heads").write(24, f"{KEY} {value}", numbers, "pair")
    write_dataset(run / DATASET, numbers)


def read(run: Path, file: str) -> Any:
    """What a reader gets of a file, in a form that can be compared."""
    if file == "manifest.json":
        return Run.open(run).manifest
    if file == "metrics.jsonl":
        return Run.open(run).metrics
    if file in (STATE, INDEX):
        state = Run.open(run).load_state()
        return state and (state.tally, {name: tensor.tolist() for name, tensor in state.optimizer.items()})
    if file.startswith("checkpoints"):
        return {name: tensor.tolist() for name, tensor in Run.open(run).weights(24).items()}
    if file == SERIES:
        return Series((run / file).parent).read(24, f"{KEY} 1").to_dict()
    return read_result(run / file).to_dict()


def _expect_named(run: Path, file: str, kind: str, whole: dict[str, Any], tally: Tally) -> None:
    told = f"damage: {file}, {kind}: "
    checked = [*check_folder(run), *check_folder(run / DATASET)]
    named = [sentence for found in checked for sentence in found.damaged]
    noted = [sentence for found in checked for sentence in found.notes]
    tally.counts[f"files damaged: {kind}"] += 1
    refused, same = _is_refused(run, file, whole[file])
    if refused:
        tally.expect(bool(named) or kind == "gone" or file in WHOLE_IN_ITSELF, f"{told}refused, but not named")
    elif not same:
        mine = file in (RESULT, DATASET) and kind in ("of another run", "link")
        whole_manifest = file == "manifest.json" and kind == "of another run"
        tally.expect(mine or (whole_manifest and bool(named)) or bool(named), f"{told}read as something else, silently")
    if kind == "link" and file != DATASET:
        tally.expect(bool(named or noted), f"{told}nothing is said of it")
    if file != "manifest.json":
        for another in set(FILES) - {file} - ({STATE, INDEX} if file in (STATE, INDEX) else set()):
            refused, same = _is_refused(run, another, whole[another])
            tally.expect(not refused and same, f"{told}{another} is no longer read")
            tally.counts["other files read beside a damaged one"] += 1


def _is_refused(run: Path, file: str, whole: Any) -> tuple[bool, bool]:
    """Whether a file is refused with a sentence; and whether what is read of it is what was written."""
    try:
        found = read(run, file)
    except BindscopeError:
        return True, False
    return False, bool(found == whole)
