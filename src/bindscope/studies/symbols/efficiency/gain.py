"""How fast the two identity scalings learn: a gain that is chosen on another task than the one it is judged on.

>>> choose_gain(load_experiment_dataset(find_experiment_dataset("gain")))
100.0
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bindscope.intervals import student_interval
from bindscope.studies.framework.claims import Condition, Quantity
from bindscope.studies.framework.experiments import count_runs, find_experiment_dataset, load_experiment_dataset
from bindscope.studies.framework.presets import find_preset
from bindscope.studies.framework.results import Context, Result
from bindscope.studies.symbols.efficiency.curves import task_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXPERIMENT, CHOSEN = "gain", "same-different-gain"
SHARED = ("last_loss", "last_accuracy", "status")
SETTING = "model.identity_gain"


def compute_optional(name: str, context: Context) -> xr.Dataset:
    """An experiment's dataset; empty where nobody trained it."""
    path = find_experiment_dataset(name, context.runs_directory)
    return xr.Dataset() if path is None else load_experiment_dataset(path)


def at_chosen_gain(dataset: xr.Dataset, chosen: xr.Dataset) -> xr.Dataset:
    """The curves of an experiment with those of identity scaling at the chosen gain in place of its own."""
    if "last_loss" not in chosen:
        return dataset
    own = dataset.isel(variant=np.flatnonzero(~np.isin(dataset.model.values, np.unique(chosen.model.values))))
    names = [name for name in SHARED if name in own and name in chosen]
    parts = [own[names], chosen[names]]
    joined = xr.concat(parts, "variant", join="outer", data_vars="all", coords="minimal", compat="override")
    if "split_n" in dataset:
        joined["split_n"] = dataset.split_n
    return joined.assign_attrs({**dataset.attrs, "common_changes": chosen.attrs.get("common_changes", "{}")})


def validation_losses(dataset: xr.Dataset) -> dict[float, np.ndarray]:
    """The last losses on validation symbols [seed] of each gain that was trained, smallest gain first."""
    losses = dataset.last_loss.sel(split="validation").transpose("variant", "seed").values
    rows = {float(gain): row[np.isfinite(row)] for gain, row in zip(dataset.value.values, losses)}
    return {gain: rows[gain] for gain in sorted(rows) if len(rows[gain])}


def choose_gain(dataset: xr.Dataset) -> float:
    """The gain with the lowest mean loss on validation symbols."""
    losses = validation_losses(dataset)
    return min(losses, key=lambda gain: float(losses[gain].mean()))


def trained_gain(dataset: xr.Dataset) -> float:
    """The gain that an experiment's runs were trained with."""
    common = json.loads(dataset.attrs.get("common_changes", "{}"))
    preset = find_preset(str(dataset.attrs["preset"])).config
    return float(common.get(SETTING, preset.model.identity_gain))


def gain_control(judged: xr.Dataset, gains: xr.Dataset) -> tuple[Condition, tuple[Quantity, ...]]:
    """Whether the gain of the runs that are judged is the one that another task chooses."""
    own, asked = trained_gain(judged), "is the one that another task's validation loss chooses"
    if "last_loss" not in gains:
        unclear = f"that the gain of {own:g} {asked} is not known; 'bindscope experiment {EXPERIMENT}' says it"
        return Condition(None, "", "", unclear), ()
    task, chosen = task_of(gains).name, choose_gain(gains)
    name = str(judged.attrs.get("title", "")).removeprefix("experiment ")
    condition = Condition(
        (chosen == own and task != task_of(judged).name) or None,
        f"the gain of {own:g} {asked} ({task})",
        "",
        f"these runs have a gain of {own:g} and validation loss on {task} chooses {chosen:g}: "
        + (
            f"train '{name}' with it ('bindscope experiment {CHOSEN}')"
            if task != task_of(judged).name
            else "that is the same task"
        ),
    )
    return condition, tuple(_quantity(f"validation loss on {task}, gain {g:g}", row) for g, row in _near(gains, own))


def conclude_gain(dataset: xr.Dataset) -> str:
    """The validation loss at every gain, and which is lowest."""
    listed = ", ".join(f"{gain:g}: {row.mean():.2f} ({row.min():.2f}–{row.max():.2f})" for gain, row in _rows(dataset))
    return (
        f"Loss on validation symbols of {task_of(dataset).name} with both scalings, n = {int(dataset.n.values[0])} "
        f"({count_runs(dataset)} runs), by gain: {listed}. It is lowest with a gain of {choose_gain(dataset):g}."
    )


def draw_gain(dataset: xr.Dataset) -> Figure:
    """The validation loss by gain, one mark a run."""
    from bindscope.studies.plots.style import BLUE, new_figure, title_figure

    with new_figure(5.2, 3.3) as figure:
        axes = figure.add_subplot()
        rows = _rows(dataset)
        axes.plot([gain for gain, _ in rows], [row.mean() for _, row in rows], color=BLUE)
        for gain, row in rows:
            axes.plot(np.full(len(row), gain), row, "o", ms=4, color=BLUE, alpha=0.75)
        axes.set(xscale="log", xlabel="gain of the two identity scalings", ylabel="loss on validation symbols")
        axes.set_ylim(bottom=0)
        title_figure(
            figure, "How fast identity scaling should learn", f"{task_of(dataset).name}, {count_runs(dataset)} runs"
        )
    return figure


def _rows(dataset: xr.Dataset) -> list[tuple[float, np.ndarray]]:
    return list(validation_losses(dataset).items())


def _near(dataset: xr.Dataset, own: float) -> list[tuple[float, np.ndarray]]:
    """The gain of the runs, the one that is chosen, and the next on either side of that."""
    rows = _rows(dataset)
    at = [gain for gain, _ in rows].index(choose_gain(dataset))
    return [row for index, row in enumerate(rows) if abs(index - at) <= 1 or row[0] == own]


def _quantity(label: str, losses: np.ndarray) -> Quantity:
    low, high = student_interval(losses) if len(losses) > 1 else (None, None)
    return Quantity(label, float(losses.mean()), low, high, len(losses), "1")


RESULTS: tuple[Result, ...] = (
    Result(
        EXPERIMENT,
        "the gain of identity scaling, by another task",
        partial(compute_optional, EXPERIMENT),
        kept=False,
        experiments=(EXPERIMENT,),
    ),
    Result(
        CHOSEN,
        "identity scaling at the gain that another task chose",
        partial(compute_optional, CHOSEN),
        kept=False,
        experiments=(CHOSEN,),
    ),
)
