"""The life of a run: what its evaluations recorded, as one labelled dataset, its phases, and the figure of it.

>>> dataset = trajectory_dataset(run.metrics, run.manifest)
>>> [phase.name for phase in phases_of(dataset)]
['random', 'heuristic', 'systematic']
>>> save_figure(figure_trajectory(dataset, phases_of(dataset)), Path("trajectory.svg"))
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.errors import BindscopeError
from bindscope.intervals import wilson_interval
from bindscope.measures.binding.phases import (
    Phase,
    PhaseCriterion,
    PhaseCurves,
    detect_phases,
    find_transition,
    lowest_accuracy,
)
from bindscope.studies.assign_add.learning.phases import phases_of_sums

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bindscope.studies.plots.style import StepScale

Record = Mapping[str, Any]  # one line of a run's metrics
CONFIDENCE = 0.95
RECORDED = {"loss": "training_loss", "examples": "training_examples", "elapsed": "seconds"}  # in a record → here
COUNTED_BY = {  # shares → the variable that says of how many programs
    "accuracy_by_depth": "n_by_depth",
    "accuracy_by_root_line": "n_by_root_line",
    "follows_chain": "n_misleading",
    "follows_early_lines": "n_misleading",
}
UNITS = {"mean_rank": "rank", "training_examples": "example", "seconds": "s"}


def trajectory_dataset(records: Iterable[Record], config: Mapping[str, Any] | None = None) -> xr.Dataset:
    """Every evaluation in a run's records as named arrays over ``step``.

    All families: ``pool_accuracy``, ``pool_accuracy_low`` / ``_high`` (95 % Wilson), ``pool_loss`` over (step, pool).
    Binding adds, for the test pool, ``accuracy_by_depth`` (step, depth), ``accuracy_by_root_line`` (step, root_line),
    ``agreement`` (step, rule), ``prediction_source`` (step, source), ``follows_chain`` and ``follows_early_lines``.
    Assign-and-add adds ``half_accuracy`` (step, pool, half), unknown where operands cannot change places. Text adds
    ``pool_perplexity`` (step, pool). ``config`` is kept as JSON in the attributes.
    """
    evaluated = _latest_by_step(record for record in records if "watched" in record)
    if not evaluated:
        raise BindscopeError("the run holds no evaluation yet: train it for at least one evaluation first.")
    evaluations = [_pools_of(record) for record in evaluated]
    pools = list(evaluations[0])
    family = _family_of(evaluations[0])
    variables = _pool_variables(evaluations, pools)
    coordinates: dict[str, Any] = {"step": np.array([int(record["step"]) for record in evaluated]), "pool": pools}
    if family == "binding":
        more, extra_coordinates = _binding_variables([evaluation["test"] for evaluation in evaluations])
    elif family == "assign_add":
        more, extra_coordinates = _half_variables(evaluations, pools)
    else:
        more, extra_coordinates = {}, {}
    dataset = xr.Dataset({**variables, **more}, {**coordinates, **extra_coordinates})
    for key, name in RECORDED.items():
        if any(record.get(key) is not None for record in evaluated):
            dataset[name] = ("step", np.array([record.get(key) for record in evaluated], dtype=float))
    dataset.attrs = {
        "title": "training trajectory",
        "family": family,
        "source": "bindscope",
        "confidence": CONFIDENCE,
        "config": json.dumps(dict(config or {}), sort_keys=True, default=str),
    }
    return _with_units(dataset)


def with_intervals(dataset: xr.Dataset) -> xr.Dataset:
    """The trajectory with a 95 % Wilson interval, ``NAME_low`` and ``NAME_high``, beside each share whose n is known.

    >>> with_intervals(trajectory_dataset(run.metrics)).accuracy_by_depth_low.sel(depth=4)
    """
    more = dataset.copy()
    for name, counted in COUNTED_BY.items():
        if name not in dataset:
            continue
        share, n = xr.broadcast(dataset[name], dataset[counted])
        n = n.transpose(*share.dims)
        known = np.isfinite(share.values)
        ends = wilson_interval(np.where(known, share.values, 0) * n.values, n.values, CONFIDENCE)
        for end, values in zip(("low", "high"), ends, strict=True):
            more[f"{name}_{end}"] = (share.dims, np.where(known, values, np.nan), {"units": "1"})
    return more


def phases_of(dataset: xr.Dataset, criterion: PhaseCriterion | None = None) -> list[Phase]:
    """The phases of a run, of binding by ``criterion``; of other families than binding and sums none are defined."""
    if dataset.attrs["family"] == "assign_add":
        return phases_of_sums(dataset)
    if dataset.attrs["family"] != "binding":
        return []
    test = dataset.sel(pool="test")
    curves = PhaseCurves(
        steps=dataset.step.values,
        accuracy=test.pool_accuracy.values,
        follows_chain=dataset.follows_chain.values,
        follows_early_lines=dataset.follows_early_lines.values,
        worst_depth=lowest_accuracy(dataset.accuracy_by_depth.values),
        chance=float(test.pool_chance),
        n_examples=int(test.pool_n),
    )
    return detect_phases(curves, criterion)


def transitions_of(
    dataset: xr.Dataset, threshold: float = 0.9, criterion: PhaseCriterion | None = None
) -> dict[str, int | None]:
    """The step at which each accuracy first reaches ``threshold`` and stays: by depth for binding, else by pool."""
    steps = dataset.step.values
    if dataset.attrs["family"] == "binding":
        curves = {f"depth {int(d)}": dataset.accuracy_by_depth.sel(depth=d).values for d in dataset.depth.values}
    else:
        curves = {str(name): dataset.pool_accuracy.sel(pool=name).values for name in dataset.pool.values}
    return {name: find_transition(steps, curve, threshold, criterion) for name, curve in curves.items()}


def figure_trajectory(dataset: xr.Dataset, phases: Sequence[Phase] | None = None, scale: StepScale = "auto") -> Figure:
    """The whole story of one run on one sheet. Phases are detected with the default criterion when none are given."""
    from bindscope.studies.plots.panels import draw_grid

    return draw_grid(dataset, phases_of(dataset) if phases is None else phases, scale)


def _latest_by_step(records: Iterable[Record]) -> list[Record]:
    """One record a step, in order; a resumed run may have measured a step twice, and then the later one counts."""
    by_step = {int(record["step"]): record for record in records}
    return [by_step[step] for step in sorted(by_step)]


def _pools_of(record: Record) -> dict[str, Mapping[str, Any]]:
    return {name: scores for name, scores in record.items() if isinstance(scores, Mapping) and name != "watched"}


def _family_of(evaluation: Mapping[str, Any]) -> str:
    if "misleading" in evaluation.get("test", {}):
        return "binding"
    if "perplexity" in evaluation.get("test", {}):
        return "text"
    return "assign_add" if "0add" in evaluation else "templates"


def _pool_variables(evaluations: Sequence[Mapping[str, Any]], pools: Sequence[str]) -> dict[str, Any]:
    def gather(key: str) -> np.ndarray:
        return np.array([[e[pool].get(key) for pool in pools] for e in evaluations], dtype=float)  # [step, pool]

    n = gather("n")[0]  # [pool]
    accuracy = gather("accuracy")
    known = np.isfinite(accuracy)
    low, high = wilson_interval(np.where(known, accuracy, 0) * n, n, CONFIDENCE)
    variables: dict[str, Any] = {
        "pool_accuracy": (("step", "pool"), accuracy),
        "pool_accuracy_low": (("step", "pool"), np.where(known, low, np.nan)),
        "pool_accuracy_high": (("step", "pool"), np.where(known, high, np.nan)),
        "pool_loss": (("step", "pool"), gather("loss")),
        "pool_n": ("pool", n),
    }
    if "perplexity" in evaluations[0][pools[0]]:
        variables["pool_perplexity"] = (("step", "pool"), gather("perplexity"))
    for key in ("chance", "chance_loss"):
        if key in evaluations[0][pools[0]]:
            variables[f"pool_{key}"] = ("pool", gather(key)[0])
    return variables


def _binding_variables(pools: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    first = pools[0]
    rules, n_lines = list(first["agreement"]), len(first["accuracy_by_root_line"])

    def gather(key: str) -> np.ndarray:
        return np.array([pool[key] for pool in pools], dtype=float)

    def gather_misleading(key: str) -> np.ndarray:
        return np.array([pool["misleading"][key] for pool in pools], dtype=float)

    variables = {
        "accuracy_by_depth": (("step", "depth"), gather("accuracy_by_depth")),
        "n_by_depth": ("depth", np.array(first["n_by_depth"])),
        "accuracy_by_root_line": (("step", "root_line"), gather("accuracy_by_root_line")),
        "n_by_root_line": ("root_line", np.array(first["n_by_root_line"])),
        "agreement": (("step", "rule"), np.array([[p["agreement"][r] for r in rules] for p in pools], dtype=float)),
        "rule_accuracy": ("rule", np.array([first["rule_accuracy"][rule] for rule in rules], dtype=float)),
        "prediction_source": (("step", "source"), gather("prediction_source")),
        "answer_source": ("source", np.array(first["answer_source"], dtype=float)),
        "follows_chain": ("step", gather_misleading("follows_chain")),
        "follows_early_lines": ("step", gather_misleading("follows_early_lines")),
        "n_misleading": ((), int(first["misleading"]["n"])),
        "digit_share": ("step", gather("digit_share")),
        "mean_rank": ("step", gather("mean_rank")),
    }
    coordinates = {
        "depth": np.arange(1, len(first["accuracy_by_depth"]) + 1),
        "root_line": np.arange(1, n_lines + 1),
        "rule": rules,
        "source": [*(f"line {line}" for line in range(1, n_lines + 1)), "none"],
    }
    return variables, coordinates


def _half_variables(
    evaluations: Sequence[Mapping[str, Any]], pools: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    halves = ("swap_seen", "both_held")
    accuracy = np.array(
        [[[e[pool].get(half, {}).get("accuracy") for half in halves] for pool in pools] for e in evaluations],
        dtype=float,
    )  # [step, pool, half]
    return {"half_accuracy": (("step", "pool", "half"), accuracy)}, {"half": list(halves)}


def _with_units(dataset: xr.Dataset) -> xr.Dataset:
    """Say of each variable what one unit of it is; shares are dimensionless, which is written 1."""
    real = "pool_chance_loss" in dataset
    for name, variable in dataset.data_vars.items():
        if str(name).endswith("loss"):
            variable.attrs["units"] = "squared error" if real else "nat"
        else:
            variable.attrs["units"] = UNITS.get(str(name), "1")
    dataset.step.attrs["units"] = "optimizer update"
    return dataset
