"""The life of a run: what its evaluations recorded, as one labelled dataset, and its phases.

>>> dataset = trajectory_dataset(run.metrics, run.manifest.config)
>>> [phase.name for phase in phases_of(dataset)]
['random', 'heuristic', 'systematic']
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError, NotYet
from bindscope.families import Family, LearnedParts, find_family
from bindscope.intervals import wilson_interval
from bindscope.measures.phases import Lasts, Phase, find_transition

Record = Mapping[str, Any]  # one line of a run's metrics
CONFIDENCE = 0.95
RECORDED = {"loss": "training_loss", "examples": "training_examples", "elapsed": "seconds"}  # in a record → here
UNITS = {"mean_rank": "rank", "training_examples": "example", "seconds": "s"}


def trajectory_dataset(
    records: Iterable[Record], config: Mapping[str, Any] | None = None, family: str | Family | None = None
) -> xr.Dataset:
    """Every evaluation in a run's records as named arrays over ``step``.

    All families: ``split_accuracy``, ``split_accuracy_low`` / ``_high`` (95 % Wilson), ``split_loss`` over (step, split).
    Binding adds, for the test split, ``accuracy_by_depth`` (step, depth), ``accuracy_by_root_line`` (step, root_line),
    ``agreement`` (step, rule), ``prediction_source`` (step, source), ``follows_chain`` and ``follows_early_lines``.
    Assign-and-add adds ``half_accuracy`` (step, split, half), unknown where operands cannot be swapped. Text adds
    ``split_perplexity`` (step, split). The family is that of ``config``, which is kept as JSON in the attributes, unless
    it is named.
    """
    evaluated = _latest_by_step(record for record in records if "watched" in record)
    if not evaluated:
        raise NotYet("the run holds no evaluation yet: train it for at least one evaluation first.")
    found = _find_family(family, config)
    evaluations = [_splits_of(record) for record in evaluated]
    splits = list(evaluations[0])
    try:
        more, more_coordinates = found.trajectory_variables(evaluations, splits)
    except LookupError as missing:
        raise BindscopeError(
            f"the evaluations are not those of a run of '{found.name}': {missing} is missing."
        ) from None
    dataset = xr.Dataset(
        {**_split_variables(evaluations, splits), **more},
        {"step": np.array([int(record["step"]) for record in evaluated]), "split": splits, **more_coordinates},
    )
    for key, name in RECORDED.items():
        if any(record.get(key) is not None for record in evaluated):
            dataset[name] = ("step", np.array([record.get(key) for record in evaluated], dtype=float))
    dataset.attrs = {
        "title": "training trajectory",
        "family": found.name,
        "source": "bindscope",
        "confidence": CONFIDENCE,
        "config": json.dumps(dict(config or {}), sort_keys=True, default=str),
    }
    return _with_units(dataset)


def with_intervals(dataset: xr.Dataset) -> xr.Dataset:
    """The trajectory with a 95 % Wilson interval, ``NAME_low`` and ``NAME_high``, beside each fraction whose n is known.

    >>> with_intervals(trajectory_dataset(run.metrics, run.manifest.config)).accuracy_by_depth_low.sel(depth=4)
    """
    more = dataset.copy()
    for name, counted in family_of_dataset(dataset).counted_by.items():
        if name not in dataset:
            continue
        fraction, n = xr.broadcast(dataset[name], dataset[counted])
        n = n.transpose(*fraction.dims)
        known = np.isfinite(fraction.values)
        ends = wilson_interval(np.where(known, fraction.values, 0) * n.values, n.values, CONFIDENCE)
        for end, values in zip(("low", "high"), ends, strict=True):
            more[f"{name}_{end}"] = (fraction.dims, np.where(known, values, np.nan), {"units": "1"})
    return more


def family_of_dataset(dataset: xr.Dataset) -> Family:
    """The family of the run that a trajectory is of."""
    return find_family(str(dataset.attrs["family"]))


def phases_of(dataset: xr.Dataset, criterion: Any = None) -> list[Phase]:
    """The phases of a run, by its family's own criterion unless one is given; none where the family defines none."""
    return list(family_of_dataset(dataset).find_phases(dataset, criterion))


def learned_parts(dataset: xr.Dataset) -> LearnedParts:
    """What the run learns one after the other: what its family says, or its splits."""
    found = family_of_dataset(dataset).learned_parts(dataset)
    if found is not None:
        return found
    curves = {str(name): dataset.split_accuracy.sel(split=name).values for name in dataset.split.values}
    return LearnedParts("split", "When each split was learned", curves, dataset.split_n.values.tolist())


def transitions_of(
    dataset: xr.Dataset, threshold: float = 0.9, criterion: Lasts | None = None
) -> dict[str, int | None]:
    """The step at which each accuracy first reaches ``threshold`` and stays: of each part that is learned."""
    steps, curves = dataset.step.values, learned_parts(dataset).accuracy
    return {name: find_transition(steps, curve, threshold, criterion) for name, curve in curves.items()}


def _find_family(family: str | Family | None, config: Mapping[str, Any] | None) -> Family:
    if isinstance(family, Family):
        return family
    name = family or dict((config or {}).get("task") or {}).get("family")
    if not name:
        raise BindscopeError("trajectory: say of which family the records are: give the run's config, or family=NAME.")
    return find_family(str(name))


def _latest_by_step(records: Iterable[Record]) -> list[Record]:
    """One record a step, in order; a resumed run may have measured a step twice, and then the later one counts."""
    by_step = {int(record["step"]): record for record in records}
    return [by_step[step] for step in sorted(by_step)]


def _splits_of(record: Record) -> dict[str, Mapping[str, Any]]:
    return {name: scores for name, scores in record.items() if isinstance(scores, Mapping) and name != "watched"}


def _split_variables(evaluations: Sequence[Mapping[str, Any]], splits: Sequence[str]) -> dict[str, Any]:
    def gather(key: str) -> np.ndarray:
        return np.array([[e[split].get(key) for split in splits] for e in evaluations], dtype=float)  # [step, split]

    n = gather("n")[0]  # [split]
    accuracy = gather("accuracy")
    known = np.isfinite(accuracy)
    low, high = wilson_interval(np.where(known, accuracy, 0) * n, n, CONFIDENCE)
    variables: dict[str, Any] = {
        "split_accuracy": (("step", "split"), accuracy),
        "split_accuracy_low": (("step", "split"), np.where(known, low, np.nan)),
        "split_accuracy_high": (("step", "split"), np.where(known, high, np.nan)),
        "split_loss": (("step", "split"), gather("loss")),
        "split_n": ("split", n),
    }
    if "perplexity" in evaluations[0][splits[0]]:
        variables["split_perplexity"] = (("step", "split"), gather("perplexity"))
    for key in ("chance", "chance_loss"):
        if key in evaluations[0][splits[0]]:
            variables[f"split_{key}"] = ("split", gather(key)[0])
    return variables


def _with_units(dataset: xr.Dataset) -> xr.Dataset:
    """Say of each variable what one unit of it is; fractions are dimensionless, which is written 1."""
    real = "split_chance_loss" in dataset
    for name, variable in dataset.data_vars.items():
        if str(name).endswith("loss"):
            variable.attrs["units"] = "squared error" if real else "nat"
        else:
            variable.attrs["units"] = UNITS.get(str(name), "1")
    dataset.step.attrs["units"] = "optimizer update"
    return dataset
