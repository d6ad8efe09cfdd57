"""Other seeds of a run's settings, from the experiments that trained them: how much of a curve is luck.

>>> find_seed_curves(run.config).accuracy_low
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.families import find_family
from bindscope.studies.framework.experiments import (
    Experiment,
    Variant,
    cell_config,
    find_experiment_dataset,
    is_of_present_preset,
    load_experiment_dataset,
)
from bindscope.studies.framework.presets import find_preset
from bindscope.training.config import TrainingConfig

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.config import RunConfig

CURVES = ("accuracy", "accuracy_by_depth", "follows_chain", "follows_early_lines", "training_loss")
SUMMARIES = (
    "left_plateau", "learned", "last_step", "last_accuracy", "status", "phases", "phase_first_step", "phase_accuracy", "n",
)  # fmt: skip
FEWEST = 2  # seeds that make a band


def find_seed_curves(
    config: RunConfig, runs_directory: Path | str = "runs", among: Sequence[str] | None = None
) -> xr.Dataset:
    """The curves over (seed, step) of the experiment with most seeds that trained a run's settings.

    Each curve has ``NAME_low`` and ``NAME_high`` besides, the least and the most of any seed at that step, and
    ``n_seeds`` says how many were still training there. A run nobody trained with another seed is refused. ``among``:
    the experiments to look in; all when left out.
    """
    best: xr.Dataset | None = None
    for experiment, variant in matching_variants(config):
        if among is not None and experiment.name not in among:
            continue
        path = find_experiment_dataset(experiment.name, runs_directory)
        if path is None:
            continue
        dataset = load_experiment_dataset(path)
        if variant.name not in dataset.variant.values or "accuracy" not in dataset:  # of sums there are splits instead
            continue
        if not is_of_present_preset(dataset, experiment):
            continue
        found = _of_variant(dataset, variant.name)
        if found.sizes["seed"] >= FEWEST and (best is None or found.sizes["seed"] > best.sizes["seed"]):
            found.attrs |= {"experiment": experiment.name, "variant": variant.name}
            best = found
    if best is None:
        raise BindscopeError(f"{config.name}: no experiment has trained these settings with more than one seed.")
    return best


def matching_variants(config: RunConfig) -> Iterator[tuple[Experiment, Variant]]:
    """Variants of experiments that are a run's settings, whatever the seed, the name and where it may stop early."""
    wanted = _essence(config)
    for experiment, variant, trained in _all_variants(config.task.family):
        if trained == wanted:
            yield experiment, variant


@cache
def _all_variants(family: str) -> tuple[tuple[Experiment, Variant, RunConfig], ...]:
    """Every variant of every experiment on tasks of a family, with what it trains."""
    found = []
    for experiment in find_family(family).experiments():
        base = find_preset(experiment.preset).config
        for variant in experiment.variants:
            config = cell_config(base, {**experiment.changes, **variant.changes}, variant.name, 0)
            found.append((experiment, variant, _essence(config)))
    return tuple(found)


def _essence(config: RunConfig) -> RunConfig:
    """A config without what does not change the road a run takes, only where it ends and what is recorded of it."""
    usual = TrainingConfig()
    training = replace(
        config.training,
        checkpoints=usual.checkpoints,
        evaluate_every=usual.evaluate_every,
        evaluate_early=usual.evaluate_early,
        evaluation_size=usual.evaluation_size,
        save_every=usual.save_every,
        stop_at=usual.stop_at,
    )
    return replace(config, name="any", seed=0, training=training)


def _of_variant(dataset: xr.Dataset, variant: str) -> xr.Dataset:
    chosen = dataset.sel(variant=variant, drop=True)
    trained = np.isfinite(chosen.accuracy.values).any(1)  # [seed]: other variants may have more seeds
    chosen = chosen.isel(seed=trained)
    found = chosen[[name for name in (*CURVES, *SUMMARIES) if name in chosen]]
    found = found.drop_vars([name for name in found.coords if name not in found.dims])
    for name in CURVES:
        if name in found:
            found[f"{name}_low"], found[f"{name}_high"] = found[name].min("seed"), found[name].max("seed")
    found["n_seeds"] = np.isfinite(found.accuracy).sum("seed")
    found.attrs = {name: dataset.attrs[name] for name in ("question", "limits", "preset") if name in dataset.attrs}
    return found
