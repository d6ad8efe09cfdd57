"""Results about programs and combinations unlike those of training, and about other runs of the same preset."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.measures.stats.fractions import fraction_variables
from bindscope.runs.config import override
from bindscope.studies.binding.learning.cells import summarise_cell
from bindscope.studies.framework.experiments import find_experiment, find_experiment_dataset, load_experiment_dataset
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Context, NotTestable, Result, last_step

if TYPE_CHECKING:
    from bindscope.runs.directory import Run

LENGTHS = (2, 4, 8, 12, 16, 20, 25)
DEPTHS = (1, 2, 3, 4, 5, 6, 8, 10, 13)
FIXED_LENGTH = "fixed-length"
KNOWN = 0.95  # accuracy on what training showed, below which nothing can be said of anything else


def held_out_step(run: Run) -> Sequence[int]:
    """The last checkpoint, of a run that was trained with combinations left out; of others no model is read."""
    task: Any = run.config.task
    return run.steps[-1:] if task.held_out else ()


def compute_lengths(context: Context) -> xr.Dataset:
    """Accuracy and the line-1 heuristic over program length and chain depth, at the last checkpoint."""
    return measure_grid(context.run, context.n, context.rng, context.on_progress)


def measure_grid(
    run: Run, n: int, rng: np.random.Generator, on_progress: Callable[[int, int], None] | None = None
) -> xr.Dataset:
    """The grid of a run's last checkpoint, with the lengths and depths that training showed."""
    from bindscope.measures.binding.generalisation import length_depth_grid

    task: Any = run.config.task
    most = 30 if task.reassign else task.n_variables
    lengths = sorted({length for length in (*LENGTHS, task.lines) if length <= most})
    depths = sorted({*DEPTHS, task.max_depth})
    dataset = length_depth_grid(run.checkpoint("last"), task, lengths, depths, n, rng, on_progress)
    return dataset.assign_attrs(_trained_on(task))


def _trained_on(task: Any) -> dict[str, int]:
    """The lengths and depths that training shows."""
    shortest = task.curriculum.first_lines if task.curriculum else task.min_lines or task.lines
    return {"trained_lines": task.lines, "trained_min_lines": shortest, "trained_max_depth": task.max_depth}


def saw_one_length(grid: xr.Dataset) -> bool:
    """Whether training showed programs of one length only to the model of a grid."""
    return int(grid.attrs["trained_min_lines"]) == int(grid.attrs["trained_lines"])


def compute_fixed_length(context: Context) -> xr.Dataset:
    """The grids of models that were trained on one length, over (seed, lines, depth); empty where nobody trained them.

    They are of the experiment's own ``preset``, whatever run is asked about.
    """
    path = find_experiment_dataset(FIXED_LENGTH, context.runs_directory)
    if path is None:
        empty = xr.Dataset(coords={"seed": np.array([], int)})
        return empty.assign_attrs(preset=find_experiment(FIXED_LENGTH).preset)
    dataset = load_experiment_dataset(path).isel(variant=0)
    preset, changes = str(dataset.attrs["preset"]), json.loads(str(dataset.attrs["common_changes"]))
    changes |= json.loads(str(dataset.attrs["changes"]))[str(dataset.variant.values)]
    trained = override(find_preset(preset).config, changes)
    dataset = dataset.drop_vars("variant")
    grids = dataset[[name for name in dataset.data_vars if str(name).startswith("grid_")]]
    known = {name: str(name).removeprefix("grid_") for name in [*grids.data_vars, "grid_lines", "grid_depth"]}
    return grids.rename(known).assign_attrs(_trained_on(trained.task))


def compute_held_out(context: Context) -> xr.Dataset:
    """Accuracy on combinations that training showed and never did: of this run, or of the experiment that tests it.

    ``heuristic_accuracy`` is the highest on combinations never shown while the run was in its heuristic phase.
    """
    from bindscope.measures.binding.generalisation import compare_held_out

    task: Any = context.run.config.task
    if not task.held_out:
        return split_held_out(find_experiment_result(context, "held-out"))
    dataset = compare_held_out(context.run.checkpoint("last"), task, context.n or 2000, context.rng)
    cell = summarise_cell(context.found["trajectory"])
    dataset = dataset.assign(heuristic_accuracy=best_in_heuristic_phase(cell), n_heuristic=float(cell.n_held_out))
    return dataset.assign_attrs(seeds=1, cut_off="")


def compute_weighting(context: Context) -> xr.Dataset:
    """Runs with chains extended by the cube of their depth and uniformly."""
    return find_experiment_result(context, "weighting")


def find_experiment_result(context: Context, name: str) -> xr.Dataset:
    """The dataset of an experiment on this run's own task and model, made here or shipped."""
    path = find_experiment_dataset(name, context.runs_directory)
    planned, own = find_experiment(name), context.run.config
    preset, changes = planned.preset, dict(planned.changes)
    if path is not None:
        dataset = load_experiment_dataset(path)
        preset, changes = str(dataset.attrs["preset"]), json.loads(str(dataset.attrs["common_changes"]))
    trained = override(find_preset(preset).config, changes)
    if (trained.task, trained.model) != (own.task, own.model):
        raise NotTestable(f"the experiment '{name}' trains {preset}, and this run has another task or model")
    if path is None:
        raise NotTestable(
            f"one run cannot show this; train several with 'bindscope experiment {name}' and verify again"
        )
    return dataset


def split_held_out(dataset: xr.Dataset) -> xr.Dataset:
    """The last evaluation of each seed, as splits over (split,): what all seeds that learned the task got right together.

    Seeds that were cut off before they answered what training showed are named in ``cut_off`` and not counted.
    """
    runs = dataset.isel(variant=0)
    if "held_out_accuracy" not in runs:
        raise NotTestable("the experiment 'held-out' recorded no held-out programs; run it again")
    shown, held = (_last_of_seeds(runs[name]) for name in ("accuracy", "held_out_accuracy"))
    learned = shown >= KNOWN if (shown >= KNOWN).any() else np.isfinite(shown)
    counts, hits = [], []
    for last, count_name in ((shown, "n"), (held, "n_held_out")):
        n = runs[count_name].values[learned]  # [seed]
        counts.append(float(n.sum()))
        hits.append(float(np.round(last[learned] * n).sum()))
    splits = xr.Dataset(fraction_variables("accuracy", ["split"], hits, counts), {"split": ["test", "held_out"]})
    splits["n"] = ("split", np.array(counts).astype(int))
    splits["gap"] = ("seed", (shown - held)[learned])
    heuristic = [best_in_heuristic_phase(runs.isel(seed=index)) for index in np.flatnonzero(learned)]
    splits["heuristic_accuracy"] = float(np.nan if np.isnan(heuristic).all() else np.nanmax(heuristic))
    splits["n_heuristic"] = float(runs.n_held_out.values[learned].min())
    fraction = json.loads(str(dataset.attrs["changes"]))[str(runs.variant.values)].get("task.held_out", np.nan)
    cut_off = ", ".join(str(seed) for seed in runs.seed.values[np.isfinite(shown) & ~learned])
    return splits.assign_attrs(
        held_out=fraction, seeds=int(learned.sum()), cut_off=cut_off, source=dataset.attrs["source"]
    )


def best_in_heuristic_phase(cell: xr.Dataset) -> float:
    """The highest accuracy on combinations never shown in a run's heuristic phase; NaN where it had none."""
    first, last = (float(cell[name].sel(phase="heuristic")) for name in ("phase_first_step", "phase_last_step"))
    during = cell.held_out_accuracy.values[(cell.step.values >= first) & (cell.step.values <= last)]
    return float(np.nanmax(during)) if np.isfinite(during).any() else np.nan


def _last_of_seeds(curves: xr.DataArray) -> np.ndarray:
    """The last value [seed] that is known of each seed; NaN of one that was not trained."""
    rows = curves.transpose("seed", "step").values
    return np.array([row[np.isfinite(row)][-1] if np.isfinite(row).any() else np.nan for row in rows])


RESULTS = (
    Result("lengths", "programs of other lengths and depths", compute_lengths, revision=2, n=100, steps=last_step,
           passes=22),
    Result("fixed-length", "models trained on one length", compute_fixed_length, kept=False, experiments=(FIXED_LENGTH,)),
    Result("held-out", "held-out combinations", compute_held_out, n=2000, steps=held_out_step,
           needs=("trajectory",), kept=False, experiments=("held-out",)),
    Result("weighting", "uniform weighting", compute_weighting, kept=False, experiments=("weighting",)),
)  # fmt: skip
