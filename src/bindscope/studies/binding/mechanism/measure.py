"""Results about the mechanism: where the value can be changed, which heads carry it, and since when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bindscope.intervals import wilson_interval
from bindscope.studies.framework.results import Context, NotTestable, Result, last_step

if TYPE_CHECKING:
    from bindscope.model.transformer import Transformer
    from bindscope.runs.directory import Run
    from bindscope.tasks.binding import CounterfactualPairs

FIRST_ROOT_LINE = 3  # programs whose root is on line 1 or 2 are left out: there shortcut and mechanism agree
EXCLUDED = "programs whose root is on line 1 or 2"
LEAST_LINES = 4  # a root on line 3 and a line that is not on its chain
SHARES = ("success", "kept")
MOST_CHECKPOINTS = 26
CARRIES = 0.5  # success above which a cell belongs to the frozen circuit
ENOUGH = 0.9  # joint success at which a set of heads is taken to carry the value
N_RANDOM_SETS = 8


def sample_pairs(run: Run, rng: np.random.Generator, n: int) -> CounterfactualPairs:
    """Pairs that differ in the constant at the root of the queried chain, from line 3 on, balanced over depths."""
    from bindscope.tasks.binding import sample_root_pairs

    task: Any = run.config.task
    if task.lines < LEAST_LINES:
        raise NotTestable(f"programs of {task.lines} lines are too short for roots from line {FIRST_ROOT_LINE} on")
    return sample_root_pairs(task, rng, n, first_root_line=FIRST_ROOT_LINE)


def compute_chain(context: Context) -> xr.Dataset:
    """Interchange of the residual stream at every position of the queried chain and every layer, by depth, last checkpoint."""
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.interventions.grids import place_grid
    from bindscope.tasks.binding import structural_places

    model = context.run.checkpoint("last")
    pairs = sample_pairs(context.run, context.rng, context.n)
    places = structural_places(pairs)
    grid = place_grid(model, contrast_pairs(pairs), places, on_progress=context.on_progress)
    dataset = summarise_by_depth(grid, depths_of(pairs), context.rng)
    dataset.attrs |= {"step": context.run.steps[-1], "accuracy": accuracy_on(model, pairs), "excluded": EXCLUDED}
    return dataset


def compute_heads(context: Context) -> xr.Dataset:
    """Interchange of heads: each alone, position by position, and the strongest together.

    Heads are ranked on one half of the pairs and tested together on the other. The root's own position is left out
    everywhere: what a head gives there is the changed token itself.
    """
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.interventions.grids import head_grid
    from bindscope.tasks.binding import structural_places

    model, rng = context.run.checkpoint("last"), context.rng
    fit, test = (sample_pairs(context.run, rng, max(1, context.n // 2)) for _ in range(2))
    places = structural_places(fit)
    marked = {name: _mark(fit, column) for name, column in places.items() if not name.startswith("lhs")}
    del marked["rhs 1"]
    marked["anywhere"] = ~_mark(fit, places["rhs 1"])
    contrast = contrast_pairs(fit)
    effects = {}
    for done, (name, marks) in enumerate(marked.items(), start=1):
        grid = head_grid(model, contrast, at_positions=marks).isel(pair=np.flatnonzero(marks.any(1)))
        effects[name] = grid[["logit_difference", "success"]].mean("pair")
        if context.on_progress:
            context.on_progress(done, 2 * len(marked))
    dataset = xr.concat(effects.values(), xr.IndexVariable("place", list(effects)), combine_attrs="drop")
    dataset = dataset.merge(_join_heads(model, test, dataset.logit_difference.sel(place="anywhere").values, rng))
    dataset.attrs = {
        "step": context.run.steps[-1],
        "accuracy": accuracy_on(model, test),
        "excluded": EXCLUDED,
        "n_fit": len(fit),
        "n_test": len(test),
        "enough": ENOUGH,
    }
    return dataset


def compute_emergence(context: Context) -> xr.Dataset:
    """Interchange in the cells that carry the value at the last checkpoint, at every kept checkpoint before."""
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.interventions.grids import place_grid
    from bindscope.tasks.binding import structural_places

    circuit = frozen_circuit(context.found["chain"])
    if not circuit:
        raise NotTestable("at the last checkpoint no place beyond the root carries the value, so there is no circuit")
    pairs = sample_pairs(context.run, context.rng, context.n)
    depths = depths_of(pairs)
    used = {place for _, place, _ in circuit} | {"distractor"}
    places = {name: column for name, column in structural_places(pairs).items() if name in used}
    steps = track_steps(context.run)
    rows: list[dict[str, np.ndarray]] = []
    for done, step in enumerate(steps, start=1):
        model = context.run.checkpoint(step)
        success = place_grid(model, contrast_pairs(pairs), places).success
        changed = success.where(~answers_already(model, pairs), 0.0)  # an answer that was there before is no success
        rows.append(_read_circuit(changed, circuit, depths) | {"accuracy": answers_right(model, pairs)})
        if context.on_progress:
            context.on_progress(done, len(steps))
    dataset = _label_emergence(rows, steps, circuit, context.rng)
    dataset.attrs |= {"excluded": EXCLUDED, "frozen_at": steps[-1], "n": len(pairs)}
    return dataset


def frozen_circuit(chain: xr.Dataset) -> list[tuple[int, str, int]]:
    """Cells (depth, position, layer) beyond the root's own position that carry the value: interchange succeeds mostly."""
    cells = []
    for depth in chain.depth.values:
        for place in chain_places(int(depth)):
            for layer in chain.layer.values:
                if place != "rhs 1" and float(chain.success.sel(depth=depth, place=place, layer=layer)) >= CARRIES:
                    cells.append((int(depth), place, int(layer)))
    return cells


def chain_places(depth: int) -> list[str]:
    """The value's way along a chain: ``rhs 1``, …, ``query``, ``colon``."""
    return [*(f"rhs {hop}" for hop in range(1, depth + 1)), "query", "colon"]


def track_steps(run: Run) -> list[int]:
    """The kept steps, or evenly chosen ones where there are very many; always the first and the last."""
    steps = np.array(run.steps)
    if len(steps) <= MOST_CHECKPOINTS:
        return steps.tolist()
    chosen = np.unique(np.linspace(0, len(steps) - 1, MOST_CHECKPOINTS).round().astype(int))
    return steps[chosen].tolist()


def depths_of(pairs: CounterfactualPairs) -> np.ndarray:
    return pairs.labels["depth"][:, 0]


def answers_right(model: Transformer, pairs: CounterfactualPairs) -> np.ndarray:
    """Whether both programs of each pair [pair] are answered correctly, without any change."""
    from bindscope.measures.evaluation import read_answers

    sides = (pairs.base, pairs.counterfactual)
    return np.all([read_answers(model, side).argmax(1) == side.targets[:, 0] for side in sides], axis=0)


def answers_already(model: Transformer, pairs: CounterfactualPairs) -> xr.DataArray:
    """Whether the base program [pair] is answered with the counterfactual digit, by chance, before any change."""
    from bindscope.measures.evaluation import read_answers

    return xr.DataArray(read_answers(model, pairs.base).argmax(1) == pairs.counterfactual_answers, dims="pair")


def accuracy_on(model: Transformer, pairs: CounterfactualPairs) -> float:
    return float(answers_right(model, pairs).mean())


def summarise_by_depth(grid: xr.Dataset, depths: np.ndarray, rng: np.random.Generator) -> xr.Dataset:
    """Means over the pairs of each depth: shares with Wilson intervals, the rest with bootstrap intervals."""
    from bindscope.interventions.outcome import summarise_outcomes

    values = np.unique(depths)
    parts = []
    for depth in values:
        part = summarise_outcomes(grid.isel(pair=np.flatnonzero(depths == depth)), rng, n_resamples=300)
        for name in SHARES:
            low, high = wilson_interval(np.nan_to_num(part[name] * part.n).clip(0, part.n), part.n)
            known = np.isfinite(part[name].values)
            part[f"{name}_low"] = (part[name].dims, np.where(known, low, np.nan))
            part[f"{name}_high"] = (part[name].dims, np.where(known, high, np.nan))
        parts.append(part)
    joined = xr.concat(parts, xr.IndexVariable("depth", values), combine_attrs="drop")
    joined.attrs = {"n": len(depths), "interval": "95 %: Wilson for shares, bootstrap over pairs otherwise"}
    return joined


def _mark(pairs: CounterfactualPairs, column: np.ndarray) -> np.ndarray:
    """Marks [pair, position] of one column a pair."""
    marks = np.zeros(pairs.base_tokens.shape, dtype=bool)
    rows = np.flatnonzero(column >= 0)
    marks[rows, column[rows]] = True
    return marks


def _join_heads(
    model: Transformer, pairs: CounterfactualPairs, effect: np.ndarray, rng: np.random.Generator
) -> xr.Dataset:
    """The strongest 1, 2, … heads together, up to enough of them or all; beside random sets of the same size."""
    from bindscope.interventions.contrast import contrast_pairs
    from bindscope.interventions.interchange import patch_sites
    from bindscope.tasks.binding import structural_places

    contrast, n_heads = contrast_pairs(pairs), effect.shape[1]
    places = structural_places(pairs)
    beyond_root, aside = ~_mark(pairs, places["rhs 1"]), _mark(pairs, places["distractor"])
    order = np.argsort(-effect.ravel(), kind="stable")

    def joint_success(heads: Sequence[int], marks: np.ndarray) -> float:
        sites = [f"L{head // n_heads}.H{head % n_heads}" for head in heads]
        return float(patch_sites(model, contrast, sites, positions=marks).success.mean())

    curve: list[float] = []
    while len(curve) < len(order) and (not curve or curve[-1] < ENOUGH):
        curve.append(joint_success(order[: len(curve) + 1].tolist(), beyond_root))
    size = len(curve)
    sets = [rng.choice(len(order), size, replace=False).tolist() for _ in range(N_RANDOM_SETS)]
    low, high = wilson_interval(np.array(curve) * len(pairs), len(pairs))
    chosen = order[:size]
    return xr.Dataset(
        {
            "joint_success": ("rank", np.array(curve)),
            "joint_success_low": ("rank", low),
            "joint_success_high": ("rank", high),
            "random_success": ("draw", np.array([joint_success(heads, beyond_root) for heads in sets])),
            "distractor_success": ((), joint_success(chosen.tolist(), aside)),
            "ranked_layer": ("rank", chosen // n_heads),
            "ranked_head": ("rank", chosen % n_heads),
        },
        {"rank": np.arange(1, size + 1)},
    )


def _read_circuit(
    success: xr.DataArray, circuit: Sequence[tuple[int, str, int]], depths: np.ndarray
) -> dict[str, np.ndarray]:
    """Success in every cell [cell], and for each pair [pair] its mean over the cells of its depth, and at the distractor."""
    cells = np.array([float(success.sel(place=p, layer=layer)[depths == d].mean()) for d, p, layer in circuit])
    inside, aside = np.full(len(depths), np.nan), np.full(len(depths), np.nan)
    for depth in np.unique(depths):
        own = [(place, layer) for d, place, layer in circuit if d == depth]
        rows = depths == depth
        if own:
            inside[rows] = np.mean([success.sel(place=p, layer=layer).values[rows] for p, layer in own], axis=0)
            layers = sorted({layer for _, layer in own})
            aside[rows] = success.sel(place="distractor", layer=layers).values[:, rows].mean(0)
    return {"cell": cells, "circuit": inside, "distractor": aside}


def _label_emergence(
    rows: Sequence[Mapping[str, np.ndarray]],
    steps: Sequence[int],
    circuit: Sequence[tuple[int, str, int]],
    rng: np.random.Generator,
) -> xr.Dataset:
    from bindscope.intervals import bootstrap_interval

    names = [f"depth {depth}: {place}, L{layer}" for depth, place, layer in circuit]
    variables: dict[str, Any] = {"cell_success": (("step", "cell"), np.stack([row["cell"] for row in rows]))}
    for name in ("circuit", "distractor", "accuracy"):
        values = [row[name][np.isfinite(row[name])].astype(float) for row in rows]  # of each step, [pair]
        bounds = [bootstrap_interval(value, rng) if len(value) else (np.nan, np.nan) for value in values]
        variables[name] = ("step", np.array([value.mean() if len(value) else np.nan for value in values]))
        variables[f"{name}_low"], variables[f"{name}_high"] = (("step", np.array(ends)) for ends in zip(*bounds))
    return xr.Dataset(variables, {"step": list(steps), "cell": names})


RESULTS = (
    Result("chain", "patching the chain", compute_chain, n=240, steps=last_step),
    Result("heads", "patching heads", compute_heads, n=160, steps=last_step),
    Result("emergence", "the circuit through training", compute_emergence, n=64, steps=track_steps, needs=("chain",)),
)
