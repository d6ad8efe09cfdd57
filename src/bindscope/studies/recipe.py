"""What makes binding easy to learn: the training recipe, taken apart.

The small binding presets leave the early-line plateau within minutes because of a handful of parts, each an ordinary
setting. An *ablation* is the preset with one part put back to what is usual. Train them all with several seeds and
compare when, if ever, each leaves the plateau.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.runs.config import RunConfig, override
from bindscope.tasks.binding import BindingTask

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.directory import Run


@dataclass(frozen=True)
class Ablation:
    """The recipe without one of its parts."""

    name: str
    meaning: str
    changes: Mapping[str, Any]


ABLATIONS: tuple[Ablation, ...] = (
    Ablation("recipe", "the preset as it is", {}),
    Ablation("one-query", "one query a program, and more programs for the same number of tokens", {"task.queries": 1}),
    Ablation("fixed-length", "every program at full length", {"task.min_lines": None}),
    Ablation(
        "no-offsets",
        "no offset-biased heads in layer 0, and so no relay",
        {"model.init.offset_bias": 0.0, "model.init.relay_offset": None},
    ),
    Ablation("no-relay", "keys look for names where they stand", {"model.init.relay_offset": None}),
    Ablation("no-mimetic-qk", "W_Q and W_K drawn apart", {"model.init.mimetic_qk": 0.0}),
    Ablation("no-mimetic-vo", "W_V and W_O drawn apart", {"model.init.mimetic_vo": 0.0}),
    Ablation("no-tied-start", "the unembedding drawn apart from the embedding", {"model.init.tied_start": 0.0}),
    Ablation("full-rotary", "all dimensions rotate, base 10,000", {"model.rope_fraction": 1.0, "model.rope_base": 1e4}),
    Ablation("no-identity-qk", "no identity path in the scores", {"model.identity_qk": False}),
    Ablation("no-identity-vo", "no identity path in the outputs", {"model.identity_vo": False}),
    Ablation("no-identity", "no identity path at all", {"model.identity_qk": False, "model.identity_vo": False}),
    Ablation("high-rate", "four times the learning rate", {"training.optimizer.lr": 4.0}),
)


def ablation_configs(
    config: RunConfig, seeds: Sequence[int], names: Iterable[str] | None = None, steps: int | None = None
) -> list[RunConfig]:
    """One configuration for each ablation and seed, named ``no-offsets-seed-1``.

    All ablations that change this preset, unless some are named.

    >>> [c.name for c in ablation_configs(find_preset("binding-tiny").config, [0], ["recipe"])]
    ['recipe-seed-0']
    """
    if not isinstance(config.task, BindingTask):
        raise BindscopeError(f"{config.name}: the recipe and its ablations are for binding presets.")
    base = config if steps is None else override(config, {"training.steps": steps})
    if names is None:
        chosen = [a for a in ABLATIONS if not a.changes or override(base, _fitted_changes(base, a)) != base]
    else:
        chosen = [find_ablation(name) for name in names]
    return [
        override(base, {**_fitted_changes(base, ablation), "seed": seed, "name": _cell_name(ablation, seed)})
        for ablation in chosen
        for seed in seeds
    ]


def find_ablation(name: str) -> Ablation:
    known = {ablation.name: ablation for ablation in ABLATIONS}
    if name not in known:
        raise BindscopeError(f"there is no ablation '{name}'.{suggest_nearest(name, known)}")
    return known[name]


def ablation_dataset(runs: Iterable[Run]) -> xr.Dataset:
    """How each run went, over (ablation, seed): when it left the plateau, when every depth was learned, where it ended.

    ``left_plateau`` is the step at which misleading programs are first answered by the chain more often than not and
    go on being so, ``learned`` the step at which every depth reaches 90 % and stays; NaN where it never happened.
    """
    import numpy as np
    import xarray as xr

    rows = {(*_split_name(run.name),): _run_summary(run) for run in runs}
    names = [a.name for a in ABLATIONS if any(name == a.name for name, _ in rows)]
    seeds = sorted({seed for _, seed in rows})
    units = {
        "left_plateau": "step",
        "learned": "step",
        "last_step": "step",
        "accuracy": "share",
        "worst_depth": "share",
    }
    nothing = dict.fromkeys(units, np.nan)
    variables = {
        key: (("ablation", "seed"), [[rows.get((name, seed), nothing)[key] for seed in seeds] for name in names])
        for key in units
    }
    dataset = xr.Dataset(variables, coords={"ablation": names, "seed": seeds})
    for key, unit in units.items():
        dataset[key].attrs["units"] = unit
    return dataset


def _fitted_changes(config: RunConfig, ablation: Ablation) -> dict[str, Any]:
    """The changes of an ablation, with those that depend on the preset worked out."""
    changes = dict(ablation.changes)
    if "training.optimizer.lr" in changes:
        changes["training.optimizer.lr"] *= config.training.optimizer.lr
    if "task.queries" in changes and isinstance(config.task, BindingTask):
        prefix, query = 4 * config.task.lines, 3
        tokens = config.training.batch_size * (prefix + query * config.task.queries)
        changes["training.batch_size"] = max(1, round(tokens / (prefix + query)))
    return changes


def _cell_name(ablation: Ablation, seed: int) -> str:
    return f"{ablation.name}-seed-{seed}"


def _split_name(name: str) -> tuple[str, int]:
    ablation, _, seed = name.rpartition("-seed-")
    return ablation, int(seed)


def _run_summary(run: Run) -> dict[str, float]:
    import numpy as np

    from bindscope.measures.phases import curves_from_evaluations, find_transition

    records = run.metrics
    curves = curves_from_evaluations([record["step"] for record in records], records)
    left = find_transition(curves.steps, curves.follows_chain, threshold=0.5)
    learned = find_transition(curves.steps, curves.worst_depth, threshold=0.9)
    return {
        "left_plateau": np.nan if left is None else left,
        "learned": np.nan if learned is None else learned,
        "last_step": float(curves.steps[-1]),
        "accuracy": float(curves.accuracy[-1]),
        "worst_depth": float(curves.worst_depth[-1]),
    }
