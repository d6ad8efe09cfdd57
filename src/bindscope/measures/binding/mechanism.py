"""How a value travels through a program: patching by depth, heads together, and a frozen circuit pair by pair.

>>> grid = position_grid(model, contrast_pairs(pairs), named_positions(pairs))
>>> summarise_by_depth(grid, depths_of(pairs), rng).success.sel(depth=3, position="rhs 2", layer=2)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

from bindscope.intervals import bootstrap_interval, wilson_interval
from bindscope.interventions.contrast import contrast_pairs
from bindscope.interventions.grids import head_grid, position_grid
from bindscope.interventions.head_sets import patch_head_sets
from bindscope.interventions.outcome import summarise_outcomes
from bindscope.measures.evaluation import read_answers
from bindscope.model.run import to_host
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import CounterfactualPairs, distractor_positions, named_positions

FRACTIONS = ("success", "kept")
N_RANDOM_SETS = 8
ENDS = ("", "_low", "_high")
DIRECTIONS = ("noising", "denoising")
N_GRID_RESAMPLES = 300


def summarise_by_depth(grid: xr.Dataset, depths: np.ndarray, rng: np.random.Generator) -> xr.Dataset:
    """Means over the pairs of each depth: fractions with Wilson intervals, the rest with bootstrap intervals."""
    values = np.unique(depths)
    parts = []
    for depth in values:
        part = summarise_outcomes(grid.isel(pair=np.flatnonzero(depths == depth)), rng, n_resamples=300)
        for name in FRACTIONS:
            low, high = wilson_interval(np.nan_to_num(part[name] * part.n).clip(0, part.n), part.n)
            known = np.isfinite(part[name].values)
            part[f"{name}_low"] = (part[name].dims, np.where(known, low, np.nan))
            part[f"{name}_high"] = (part[name].dims, np.where(known, high, np.nan))
        parts.append(part)
    joined = xr.concat(parts, xr.IndexVariable("depth", values), combine_attrs="drop")
    joined.attrs = {"n": len(depths), "interval": "95 %: Wilson for fractions, bootstrap over pairs otherwise"}
    return joined


def answers_right(model: Transformer, pairs: CounterfactualPairs) -> np.ndarray:
    """Whether both programs of each pair [pair] are answered correctly, without any change."""
    sides = (pairs.base, pairs.counterfactual)
    return np.all([read_answers(model, side).argmax(1) == side.targets[:, 0] for side in sides], axis=0)


def answers_already(model: Transformer, pairs: CounterfactualPairs) -> xr.DataArray:
    """Whether the base program [pair] is answered with the counterfactual digit, by chance, before any change."""
    return xr.DataArray(read_answers(model, pairs.base).argmax(1) == pairs.counterfactual_answers, dims="pair")


def accuracy_on(model: Transformer, pairs: CounterfactualPairs) -> float:
    return float(answers_right(model, pairs).mean())


def depths_of(pairs: CounterfactualPairs) -> np.ndarray:
    return pairs.labels["depth"][:, 0]


def mark_columns(pairs: CounterfactualPairs, column: np.ndarray) -> np.ndarray:
    """Marks [pair, position] of one column a pair."""
    marks = np.zeros(pairs.base_tokens.shape, dtype=bool)
    rows = np.flatnonzero(column >= 0)
    marks[rows, column[rows]] = True
    return marks


def join_heads(
    model: Transformer, pairs: CounterfactualPairs, effect: np.ndarray, rng: np.random.Generator, enough: float
) -> xr.Dataset:
    """The strongest 1, 2, … heads together, until the whole interval is above ``enough``, or all; beside random sets of as
    many, and beside the same heads at each kind of distractor, over the pairs that have one."""
    contrast, n_heads = contrast_pairs(pairs), effect.shape[1]
    asides = {kind: mark_columns(pairs, column) for kind, column in distractor_positions(pairs).items()}
    order = np.argsort(-effect.ravel(), kind="stable")

    def success_at(marks: np.ndarray) -> Callable[[Sequence[int]], float]:
        patch, touched = patch_head_sets(model, contrast, marks), torch.from_numpy(marks.any(1))

        def success(heads: Sequence[int]) -> float:
            top = to_host(patch([(head // n_heads, head % n_heads) for head in heads])).argmax(-1)
            return float((top == contrast.source_answers)[touched].float().mean())

        return success

    joint_success = success_at(~mark_columns(pairs, named_positions(pairs)["rhs 1"]))  # beyond the root
    curve: list[float] = []
    while len(curve) < len(order) and (not curve or wilson_interval(curve[-1] * len(pairs), len(pairs))[0] < enough):
        curve.append(joint_success(order[: len(curve) + 1].tolist()))
    size = len(curve)
    sets = [rng.choice(len(order), size, replace=False).tolist() for _ in range(N_RANDOM_SETS)]
    low, high = wilson_interval(np.array(curve) * len(pairs), len(pairs))
    chosen = order[:size]
    n_aside = {kind: int(marks.any(1).sum()) for kind, marks in asides.items()}
    changed = [success_at(asides[kind])(chosen.tolist()) if n else np.nan for kind, n in n_aside.items()]
    return xr.Dataset(
        {
            "joint_success": ("rank", np.array(curve)),
            "joint_success_low": ("rank", low),
            "joint_success_high": ("rank", high),
            "random_success": ("draw", np.array([joint_success(heads) for heads in sets])),
            "distractor_success": ("distractors", changed),
            "n_distractor": ("distractors", list(n_aside.values())),
            "ranked_layer": ("rank", chosen // n_heads),
            "ranked_head": ("rank", chosen % n_heads),
        },
        {"rank": np.arange(1, size + 1), "distractors": list(asides)},
    )


def read_circuit(
    success: xr.DataArray, circuit: Sequence[tuple[int, str, int]], depths: np.ndarray, distractors: Sequence[str]
) -> dict[str, np.ndarray]:
    """Success in every cell [cell], and for each pair [pair] its mean over the cells of its depth; of each distractor
    [distractor, pair], at the same layers."""
    cells = np.array([float(success.sel(position=p, layer=layer)[depths == d].mean()) for d, p, layer in circuit])
    inside, aside = np.full(len(depths), np.nan), np.full((len(distractors), len(depths)), np.nan)
    for depth in np.unique(depths):
        own = [(position, layer) for d, position, layer in circuit if d == depth]
        rows = depths == depth
        if own:
            inside[rows] = np.mean([success.sel(position=p, layer=layer).values[rows] for p, layer in own], axis=0)
            layers = sorted({layer for _, layer in own})
            found = success.sel(position=list(distractors), layer=layers).transpose("position", "layer", "pair")
            aside[:, rows] = found.values[:, :, rows].mean(1)
    return {"cell": cells, "circuit": inside, "distractor": aside}


def label_emergence(
    rows: Sequence[Mapping[str, np.ndarray]],
    steps: Sequence[int],
    circuit: Sequence[tuple[int, str, int]],
    distractors: Sequence[str],
    rng: np.random.Generator,
) -> xr.Dataset:
    names = [f"depth {depth}: {position}, L{layer}" for depth, position, layer in circuit]
    variables: dict[str, Any] = {"cell_success": (("step", "cell"), np.stack([row["cell"] for row in rows]))}
    for name in ("circuit", "accuracy"):
        numbers = np.array([_mean_interval(row[name], rng) for row in rows])  # [step, 3]
        variables |= {f"{name}{end}": ("step", numbers[:, at]) for at, end in enumerate(ENDS)}
    asides = np.array([[_mean_interval(values, rng) for values in row["distractor"]] for row in rows])
    variables |= {f"distractor{end}": (("step", "distractors"), asides[:, :, at]) for at, end in enumerate(ENDS)}
    return xr.Dataset(variables, {"step": list(steps), "cell": names, "distractors": list(distractors)})


def _mean_interval(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """The mean of what is known with its bootstrap interval."""
    known = values[np.isfinite(values)].astype(float)
    return (float(known.mean()), *bootstrap_interval(known, rng)) if len(known) else (np.nan, np.nan, np.nan)


def measure_grids(model: Transformer, pairs: CounterfactualPairs, seed: int) -> xr.Dataset:
    """Both grids in both directions; the same pairs are drawn again in every cell, grid and checkpoint."""
    found = []
    for direction in DIRECTIONS:
        contrast = contrast_pairs(pairs, direction)  # type: ignore[arg-type]
        grids = {"chain": position_grid(model, contrast, named_positions(pairs)), "head": head_grid(model, contrast)}
        summaries = []
        for grid, outcomes in grids.items():
            summary = summarise_outcomes(outcomes, np.random.default_rng(seed), n_resamples=N_GRID_RESAMPLES)
            summary = summary.drop_vars("n")
            summaries.append(summary.rename({name: f"{grid}_{name}" for name in summary.data_vars}))
        joined = xr.merge(summaries, combine_attrs="drop")
        joined["already"] = ((), _answers_before(model, pairs, direction), {"units": "fraction"})
        joined["accuracy"] = ((), accuracy_on(model, pairs), {"units": "fraction"})
        found.append(joined)
    return xr.concat(found, xr.IndexVariable("direction", list(DIRECTIONS)), combine_attrs="drop")


def _answers_before(model: Transformer, pairs: CounterfactualPairs, direction: str) -> float:
    """The fraction of pairs whose unchanged run already has the other program's answer on top."""
    sides: tuple[Any, Any] = (pairs.base, pairs.counterfactual)
    run, other = sides if direction == "noising" else sides[::-1]
    return float((read_answers(model, run).argmax(1) == other.targets[:, 0]).mean())
