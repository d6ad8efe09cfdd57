"""``bindscope recipe``: recipe ablation, what each part of a training recipe is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bindscope.cli.experiment import format_cells
from bindscope.cli.options import AtLeastOne
from bindscope.cli.outcome import show_progress
from bindscope.runs.locate import RUNS_DIRECTORY
from bindscope.runs.placement import Device

if TYPE_CHECKING:
    import xarray as xr


def ablate_recipe(
    preset: str = "binding-tiny",
    /,
    *,
    only: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    seeds: AtLeastOne = 3,
    steps: int | None = None,
    jobs: AtLeastOne = 1,
    device: Device = "cpu",
    out: Path | None = None,
) -> None:
    """Train a binding preset without each part of its recipe, and compare.

    Every ablation and seed is a run of its own, so the command can be stopped and given again: runs that have ended are
    not trained again, interrupted ones go on.

    Examples:
        bindscope recipe binding-tiny --seeds 3 --steps 2500 --jobs 2
        bindscope recipe binding-tiny --only no-offsets --only no-identity --seeds 1

    Parameters
    ----------
    preset
        The binding preset to take apart.
    only
        Train only this ablation; give it once per ablation. All of them when left out.
    seeds
        How many seeds to train each with, counted from 0.
    steps
        How many steps to train at most; the preset's own when left out.
    jobs
        How many runs to train at once, one CPU thread each.
    device
        Where new runs are trained; auto takes a GPU when there is one. Several jobs share it.
    out
        The directory that holds the runs; runs/recipe-PRESET when left out.
    """
    from bindscope.runs.files import write_atomically
    from bindscope.runs.sweep import train_sweep
    from bindscope.studies.binding.experiments.recipe import ablation_configs, ablation_dataset
    from bindscope.studies.framework.presets import find_preset

    configs = ablation_configs(find_preset(preset).config, range(seeds), only or None, steps)
    directory = out or RUNS_DIRECTORY / f"recipe-{preset}"
    runs = []
    with show_progress("training") as on_progress:
        on_progress(0, len(configs))
        for run in train_sweep(configs, directory, jobs, device=device):
            runs.append(run)
            on_progress(len(runs), len(configs))
    dataset = ablation_dataset(runs)
    table = format_ablations(dataset)
    write_atomically(directory / "ablations.txt", f"{table}\n".encode())
    print(table)
    print(f"Saved in {directory}, the table in {directory / 'ablations.txt'}.")


def format_ablations(dataset: xr.Dataset) -> str:
    """One row for each ablation: per seed when it left the plateau, when it had learned, and its last accuracy."""
    from bindscope.studies.binding.experiments.recipe import find_ablation

    meanings = {str(name): find_ablation(str(name)).meaning for name in dataset.ablation.values}
    return format_cells(dataset.rename(ablation="variant", accuracy="last_accuracy"), meanings, heading="ablation")
